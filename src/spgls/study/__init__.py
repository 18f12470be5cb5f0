"""Looking at games and models: paths, comparisons, explanations, robustness."""
