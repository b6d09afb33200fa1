"""What hawk's tests share: building programs, calling compiled code, exact arithmetic, random programs."""
