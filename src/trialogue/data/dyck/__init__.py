"""Dyck strings (well-nested brackets): their distributions in the thesis, exact samplers and a perfect verifier."""
