"""Reading and writing of request bodies, shared by the wires."""
