"""Questions and answers as people have them: the files, the frames and the keys of other tools -> cases."""
