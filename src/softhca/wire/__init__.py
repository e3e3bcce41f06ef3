"""How packets look on a wire: codec, checksums, segmentation, and the tap that writes them to a pcapng file."""
