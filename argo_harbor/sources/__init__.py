"""Where tasksets come from: reading, digests, archives and selection. Never imports Harbor."""
