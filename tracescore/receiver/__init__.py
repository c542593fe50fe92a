"""OTLP in: requests of both protocols -> raw spans and log records of admitted traces."""
