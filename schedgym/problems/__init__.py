"""One folder per problem, with the same rooms in each; found by :func:`schedgym.core.problem.problems`."""
