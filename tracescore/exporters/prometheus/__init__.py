"""Scores as Prometheus series: the windows behind the gauges, histograms, labels and the text of a scrape."""
