"""What the project runs beside the package. Tests and the site import some of it."""
