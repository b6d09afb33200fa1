"""raptor: the contract between hawk, which builds bundles of kernels, and eagle, which runs them."""
