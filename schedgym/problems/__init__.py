"""One folder per problem, with the same modules in each; see :func:`schedgym.core.problem.problems`."""
