"""What eagle's tests share: a few kernels, small graphs of them, and sums and joins done by NumPy."""
