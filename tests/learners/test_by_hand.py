"""Updates worked out on paper."""

import numpy as np
import pytest

from stream_hc import HAROW, HPerceptron, NodePA, Perceptron, Taxonomy
from tests.strategies import to_rows

CHAIN = Taxonomy([("sport", None), ("tennis", "sport"), ("cup", "tennis")])


def margins(model, x):
    return model.margins(to_rows([x], model.n_features))[0].tolist()


def test_h_perceptron_leaves_ineligible_nodes_alone():
    model = HPerceptron(CHAIN, n_features=4)
    model.learn_one({0: 1.0}, set())  # nothing was predicted, nothing was wrong
    assert model.n_updates.tolist() == [0, 0, 0]
    model.learn_one({0: 1.0}, {"sport"})  # cup is not eligible: tennis is no true label
    assert model.n_updates.tolist() == [1, 0, 0]
    model.learn_one({0: 2.0}, {"cup"})  # sport is right; tennis and cup are predicted 0
    assert margins(model, {0: 1.0}) == [1.0, 2.0, 2.0]


def test_paper_cold_start_learns_from_negatives_at_once():
    model = HPerceptron(CHAIN, n_features=4, cold_start="paper")
    model.learn_one({0: 1.0}, {"sport"})  # all predicted 1; cup is not eligible
    assert margins(model, {0: 1.0}) == [0.0, -1.0, 0.0]


def test_path_and_node_judge_differently_under_a_wrong_parent():
    by_path = HPerceptron(CHAIN, n_features=4)
    by_node = HPerceptron(CHAIN, n_features=4, judged_by="node")
    flat = Perceptron(CHAIN, n_features=4)
    for model in (by_path, by_node, flat):
        model.learn_one({0: 1.0}, {"tennis"})
        model.learn_one({0: 1.0, 1: 1.0}, set())  # sport is wrong and unlearns; tennis is not eligible
    assert margins(by_path, {0: 1.0}) == margins(by_node, {0: 1.0}) == [0.0, 1.0, 0.0]
    assert margins(flat, {0: 1.0}) == [0.0, 0.0, 0.0]  # flat: tennis learns from every document
    for model in (by_path, by_node):
        model.learn_one({0: 1.0}, {"tennis"})  # sport says 0, tennis by itself says 1
    assert margins(by_path, {0: 1.0}) == [1.0, 2.0, 0.0]
    assert margins(by_node, {0: 1.0}) == [1.0, 1.0, 0.0]


def test_node_pa():
    model = NodePA(CHAIN, n_features=4, C=10.0)
    model.learn_one({0: 2.0}, {"sport"})  # α = 1 / ‖x‖² = 1/4 at sport, the same downward at tennis
    assert margins(model, {0: 2.0}) == [1.0, -1.0, 0.0]
    model.learn_one({0: 2.0}, {"sport"})  # margins of 1: passive
    assert model.n_updates.tolist() == [1, 1, 0]
    clipped = NodePA(CHAIN, n_features=4, C=0.125)
    clipped.learn_one({0: 2.0}, {"sport"})
    assert margins(clipped, {0: 2.0}) == [0.5, -0.5, 0.0]


def test_harow():
    model = HAROW(CHAIN, n_features=4, r=1.0)
    model.learn_one({0: 1.0}, {"sport"})  # s = 1, β = 1/2, α = 1/2; σ = 1 - 1/2
    assert margins(model, {0: 1.0}) == [0.5, -0.5, 0.0]
    model.learn_one({0: 1.0}, {"sport"})  # s = 1/2, β = 2/3, α = 1/3; w += 1/6; σ -= 1/6
    assert margins(model, {0: 1.0})[0] == pytest.approx(2 / 3)
    assert model.state()["variances"][0].tolist() == pytest.approx([1 / 3, 1 / 3, 1.0])


def test_tiny_values_do_not_divide_by_zero():
    model = NodePA(CHAIN, n_features=4)
    model.learn_one({0: 1e-30}, {"sport"})
    assert np.isfinite(model.state()["weights"]).all()
    assert model.n_updates.tolist() == [1, 1, 0]


def test_harow_variances_stay_positive_for_large_features():
    model = HAROW(Taxonomy([("p", None)]), n_features=2)
    sigma = 1.0
    for x, y in [(42059940.0, {"p"}), (52776900.0, set()), (51111508.0, {"p"})]:
        model.learn_one({0: x}, y)
        sigma *= 0.1 / (0.1 + sigma * x * x)
        assert model.state()["variances"][0, 0] == pytest.approx(sigma, rel=1e-4)
