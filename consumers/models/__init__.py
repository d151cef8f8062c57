"""Models in a topic: trainers publish versions, predictors follow them."""
