"""The ten passes, one file each, named by what it does. The order is in `loadmaster.core.pipeline`."""
