"""Web archives: records as text and bytes, without files and time."""
