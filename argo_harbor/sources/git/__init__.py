"""Tasks in Git repositories, read without running anything of them."""
