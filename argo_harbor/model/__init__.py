"""Pure data, shared by all rooms.

The modules that every compile imports leave out `from __future__ import annotations`: with it, pydantic
compiles each annotation a second time at every start of the program.
"""
