"""The SVM baselines: each node is what scikit-learn makes of the documents it should see."""

import builtins

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from stream_hc import HSVM, FlatSVM, Taxonomy
from tests.maxmargin.test_hm3 import N_FEATURES, news


@pytest.mark.parametrize("kind", [FlatSVM, HSVM])
@pytest.mark.parametrize("intercept", [True, False])
def test_every_node_is_an_svm_of_the_right_documents(kind, intercept):
    taxonomy, X, Y = news(120)
    model = kind(taxonomy, C=0.7, intercept=intercept, n_features=N_FEATURES).fit(X, Y)
    margins, true = model.margins(X), Y.toarray()
    on = np.zeros(true.shape, bool)
    for node in range(len(taxonomy)):
        rows = np.arange(120)
        if kind is HSVM:
            rows = rows[true[:, taxonomy.parents(node)].all(axis=1)]
        y = true[rows, node]
        if y.any() and not y.all():
            svm = LinearSVC(C=0.7, fit_intercept=intercept, random_state=0).fit(X[rows].toarray(), y)
            np.testing.assert_allclose(
                margins[:, node], svm.decision_function(X.toarray()), rtol=0, atol=1e-2
            )
        else:
            assert (margins[:, node] == (1.0 if y.any() else -1.0)).all()
        on[:, node] = (margins[:, node] > 0) & on[:, taxonomy.parents(node)].all(axis=1)
    assert (model.predict_many(X).toarray() == on).all()


def test_errors_name_the_remedy(monkeypatch):
    taxonomy, X, Y = news(5)
    model = HSVM(taxonomy, n_features=N_FEATURES)
    with pytest.raises(ValueError, match="call fit first"):
        model.predict_many(X)
    with pytest.raises(ValueError, match="5 documents, but labels for 4"):
        model.fit(X, Y[:4])
    with pytest.raises(ValueError, match="the window is empty"):
        model.fit(X[:0], Y[:0])
    with pytest.raises(ValueError, match="taxonomy must be a Taxonomy"):
        FlatSVM(["a"])
    real = builtins.__import__

    def without(name, *arguments, **others):
        if name.startswith("sklearn"):
            raise ImportError(name)
        return real(name, *arguments, **others)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'stream_hc\[compare\]'"):
        model.fit(X, Y)


def test_a_dag():
    dag = Taxonomy([("a", None), ("b", None), ("ab", "a"), ("ab", "b")])
    X = np.eye(4, 8, dtype=np.float32)
    model = HSVM(dag, C=100.0, n_features=8).fit(X, [{"ab"}, {"a"}, {"b"}, set()])
    assert dag.decode(model.predict_many(X)) == [{"a", "b", "ab"}, {"a"}, {"b"}, set()]
