"""An interactive page of four scenes about samplers and models, written as one HTML file."""
