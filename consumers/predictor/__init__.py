"""Predictors: any number in one group, each follows the models that trainers publish."""
