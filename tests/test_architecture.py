"""The house rules that no linter checks."""

import ast
import hashlib
import importlib
import pkgutil
import subprocess
import sys

import pytest

import stream_hc
import stream_hc.runtime
from stream_hc.learners import LEARNERS
from tests.conftest import ROOT

MODULES = [
    module.name
    for module in pkgutil.walk_packages(stream_hc.__path__, "stream_hc.")
    if not module.name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_all_is_complete_and_true(name):
    module = importlib.import_module(name)
    exported = getattr(module, "__all__", [])
    assert [public for public in exported if not hasattr(module, public)] == []
    tree = ast.parse((ROOT / module.__file__).read_text())
    own = {
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
    }
    if not name.startswith(("stream_hc.cli", "stream_hc.kernels")):
        assert own <= set(exported), "public, but not in __all__"


@pytest.mark.parametrize("package", [stream_hc, stream_hc.runtime])
def test_the_package_offers_what_it_promises(package):
    for name in package.__all__:
        assert getattr(package, name).__name__ == name
        assert name in dir(package)
    with pytest.raises(AttributeError, match=f"{package.__name__}' has no attribute 'nonsense'"):
        _ = package.nonsense


def test_the_package_offers_all_learners():
    assert {kind.__name__ for kind in LEARNERS.values()} <= set(stream_hc.__all__)


def test_importing_the_package_is_cheap():
    costly = "{'numba', 'river', 'matplotlib', 'typer'}"
    code = f"import sys, stream_hc, stream_hc.runtime; print(sorted({costly} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.strip() == "[]"


def test_a_kernel_that_calls_those_of_another_file_names_its_state():
    """Numba's disk cache does not notice edits in other files: the line that names them must change, too."""
    folder = ROOT / "stream_hc" / "kernels"
    for path in folder.glob("*.py"):
        source = path.read_text()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("stream_hc"):
                package, _, other = node.module.rpartition(".")
                if package == "stream_hc.kernels":
                    state = hashlib.sha256((folder / f"{other}.py").read_bytes()).hexdigest()[:8]
                    assert f"# Built on {other}.py as of {state}:" in source, f"{path.name}: write {state}"
                else:
                    assert node.module == "stream_hc.kernels", f"{path.name} imports {node.module}"


def test_nothing_loads_a_pickle():
    for path in (ROOT / "stream_hc").rglob("*.py"):
        names = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
        assert not names & {"pickle", "marshal", "shelve", "joblib", "eval", "exec"}, path.name
