"""Every package that is imported is asked for: by the core, by an extra, or by whoever hands us its objects."""

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import survscore

PACKAGE = Path(survscore.__file__).parent
PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"
CONFIGURATION = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
PROJECT = CONFIGURATION["project"]
GROUPS = CONFIGURATION["dependency-groups"]
# Where what is imported is called otherwise than what is installed.
DISTRIBUTIONS = {"sklearn": "scikit-learn", "distributed": "dask", "sksurv": "scikit-survival"}
# Modules with an extra of their own may import it at once; the core must not import them at once.
AT_ONCE = {
    "models": r"(models|adapters)/.*|.*/survival_model\.py|_utils/tensor_\w+\.py|engine/(tensor\w*|_triton\w*)\.py",
    "datasets": r"datasets/r_files\.py",
    "atlas": r"paper/atlas/.*",
    "plots": r"plots/.*",
    "reproduce": r"paper/\w+\.py",
}
EXTRAS = ("plots", "report", "models", "data", "dask", "spark", "datasets", "atlas", "reproduce")
# Imported only when somebody hands over an object, a loop or an address of that package, and so has it already.
HANDED_OVER = {
    "fsspec": "scale/listing.py",
    "lifelines": "adapters/lifelines.py",
    "polars": "scale/sources.py",
    "torchtuples": "adapters/pycox.py",
    "xgboost": "adapters/xgboost.py",
}
# Installed for a table that is read without importing it.
FOR_ITS_DATA = {"Lifetimes"}
# torch brings the one version that it works with, on platforms where there is one.
COMES_WITH_TORCH = "triton"


def asked_for(requirements):
    """Return the names of distributions, those of extras of our own included."""
    names = set()
    for requirement in requirements:
        name, _, extras, _ = re.fullmatch(r"([\w.-]+)(\[([^]]*)\])?(.*)", requirement).groups()
        if name == PROJECT["name"]:
            for extra in extras.split(","):
                names |= asked_for(PROJECT["optional-dependencies"][extra])
        else:
            names.add(name)
    return names


CORE = asked_for(PROJECT["dependencies"])
BY_EXTRA = {extra: CORE | asked_for(PROJECT["optional-dependencies"][extra]) for extra in EXTRAS}


@cache
def imported(path):
    """Return (module, whether at once) for all that a module imports, other than for the checking of types."""
    found = []

    def visit(node, at_once):
        if isinstance(node, ast.Import):
            found.extend((alias.name, at_once) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.append((node.module, at_once))
            found.extend((f"{node.module}.{alias.name}", at_once) for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for statement in node.orelse:
                visit(statement, at_once)
        elif not isinstance(node, ast.expr):  # which import nothing
            later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for child in ast.iter_child_nodes(node):
                visit(child, at_once and not later)

    visit(ast.parse(path.read_text(encoding="utf-8")), True)
    return found


def others(path):
    """Return {distribution: whether it is imported at once} for packages that are neither Python's nor ours."""
    found = {}
    for module, at_once in imported(path):
        top = module.split(".")[0]
        if top not in sys.stdlib_module_names and top != "survscore":
            name = DISTRIBUTIONS.get(top, top)
            found[name] = found.get(name, False) or at_once
    return found


def extra_of(path):
    """Return the extra without which a module can't be imported, or None for the core."""
    relative = path.relative_to(PACKAGE).as_posix()
    return next((extra for extra, pattern in AT_ONCE.items() if re.fullmatch(pattern, relative)), None)


MODULES = sorted(PACKAGE.rglob("*.py"))


def test_what_is_imported_at_once_is_asked_for_by_the_core_or_the_extra_of_the_module():
    for path in MODULES:
        allowed = BY_EXTRA.get(extra_of(path), CORE) | ({COMES_WITH_TORCH} if extra_of(path) else set())
        wrong = {name for name, at_once in others(path).items() if at_once} - allowed
        assert not wrong, f"{path.relative_to(PACKAGE)} imports {wrong} at once, which a plain install has not"


def test_what_is_imported_later_is_asked_for_by_an_extra():
    allowed = set().union(*BY_EXTRA.values())
    for path in MODULES:
        relative = path.relative_to(PACKAGE).as_posix()
        handed_over = {name for name, where in HANDED_OVER.items() if where == relative}
        with_torch = {COMES_WITH_TORCH} if extra_of(path) == "models" else set()
        wrong = set(others(path)) - allowed - handed_over - with_torch
        assert not wrong, f"{relative} imports {wrong}, which no extra asks for"


def test_what_is_handed_over_is_tested():
    installed = asked_for(GROUPS["test"])
    assert set(HANDED_OVER) <= installed


def test_nothing_is_asked_for_in_vain():
    used = {name for path in MODULES for name in others(path)}
    assert CORE <= used
    assert set().union(*BY_EXTRA.values()) - FOR_ITS_DATA <= used


def test_the_core_does_not_import_modules_with_extras_at_once():
    with_extras = {
        ".".join(["survscore", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")
        for path in MODULES
        if extra_of(path)
    }
    for path in MODULES:
        if extra_of(path) is None:
            wrong = {module for module, at_once in imported(path) if at_once} & with_extras
            assert not wrong, f"{path.relative_to(PACKAGE)} imports {wrong} at once"


def test_every_requirement_has_a_lowest_version():
    asked = [
        one for some in (PROJECT["optional-dependencies"] | GROUPS).values() for one in some if isinstance(one, str)
    ]
    for requirement in [*PROJECT["dependencies"], *asked]:
        assert requirement.startswith("survscore[") or ">=" in requirement, requirement


def test_tools_of_developers_are_in_groups_and_not_in_what_users_install():
    assert not {"pytest", "ruff", "mypy", "sphinx", "build"} & set().union(
        *map(asked_for, PROJECT["optional-dependencies"].values())
    )


def test_messages_advise_extras_that_exist():
    pages = [*MODULES, *(PYPROJECT.parent / "docs").rglob("*.rst"), PYPROJECT.parent / "README.md"]
    texts = [path.read_text(encoding="utf-8") for path in pages if "generated" not in path.parts]
    advice = [extras for text in texts for extras in re.findall(r"install ['\"](?:survscore|\.)\[([\w,]+)\]", text)]
    advised = {extra for extras in advice for extra in extras.split(",")}
    assert {"plots", "report", "models"} <= advised
    assert advised <= set(PROJECT["optional-dependencies"])
