"""The guest lab: builds an image from distribution packages, boots it with served devices, runs a command."""
