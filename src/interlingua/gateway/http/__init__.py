"""HTTP server mechanics: authentication, request bodies, response streams, deadlines, error responses."""
