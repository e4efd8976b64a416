"""Algorithms of the papers, and what they are compared with, as policies: one folder per problem."""
