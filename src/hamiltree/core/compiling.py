"""What keeps compiling this package to seconds: private ground of numba, all of it in this file.

numba compiles a function for itself, with a way in from Python, optimises it, makes machine code
of it and files it away; then copies it into each of its callers and optimises the copy again, and
so on up. Here a function that is called from compiled code is only translated (``ForCallers``),
and optimised once, together with all it calls, where the outermost is compiled.

The rest are places where numba repeats work; what it computes stays the same.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from numba import _dynfunc
from numba.core import (
    compiler,
    compiler_machinery,
    inline_closurecall,
    ssa,
    targetconfig,
    typed_passes,
)
from numba.core import ir as numba_ir
from numba.core.codegen import JITCodeLibrary


class _Translated(JITCodeLibrary):
    """The code of a function for its callers to take in: not optimised, no machine code."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@compiler_machinery.register_pass(mutates_CFG=True, analysis_only=False)
class _Translate(typed_passes.NativeLowering):
    """Numba's own lowering into a library that goes no further."""

    _name = "hamiltree_translate"

    def run_pass(self, state: Any) -> bool:
        state.library = _Translated(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        made = state["cr"]
        name = made.fndesc.qualname.split(".")[-1]
        # Stands for the function where numba looks it up; address 0, since there is no code.
        entry = _dynfunc.make_function(
            made.fndesc.lookup_module(), name, "", 0, made.env, (state.library,)
        )
        state.targetctx.insert_user_function(entry, made.fndesc, [state.library])
        state["cr"] = made._replace(cfunc=entry)
        return True


class _Whole(JITCodeLibrary):
    """The code of a function with all it calls: optimised once, not first bit by bit."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


@compiler_machinery.register_pass(mutates_CFG=True, analysis_only=False)
class _LowerWhole(typed_passes.NativeLowering):
    _name = "hamiltree_lower_whole"

    def run_pass(self, state: Any) -> bool:
        state.library = _Whole(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return bool(super().run_pass(state))


class _Compiler(compiler.CompilerBase):
    """Numba's passes with another for lowering."""

    lowering: type[Any]

    def define_pipelines(self) -> list[Any]:
        passes = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [
            (self.lowering, what) if step is typed_passes.NativeLowering else (step, what)
            for step, what in passes.passes
        ]
        passes.finalize()
        return [passes]


class ForCallers(_Compiler):
    """For a function that other compiled code takes in."""

    lowering = _Translate


class AsAWhole(_Compiler):
    """For a function that takes in others."""

    lowering = _LowerWhole


# ------------------------------------------------------- where numba repeats work

INLINED: set[Callable[..., Any]] = set()
"""Functions of this package that are copied into their callers; only these are treated apart."""

_frontends: dict[tuple[Callable[..., Any], bool], Any] = {}
_run_untyped_passes = inline_closurecall.InlineWorker.run_untyped_passes


def _remembered_passes(worker: Any, function: Any, enable_ssa: bool = False) -> Any:
    """The first passes over a function that is copied in: numba runs them again for every copy."""
    if function not in INLINED:
        return _run_untyped_passes(worker, function, enable_ssa)
    key = (function, enable_ssa)
    if key not in _frontends:
        _frontends[key] = _run_untyped_passes(worker, function, enable_ssa)
    worker.flags.enable_ssa = enable_ssa  # as the passes leave it
    kept = _frontends[key]
    fresh = kept.copy()
    fresh.func_id = kept.func_id.derive()  # names of variables hang on it
    (scope,) = {id(block.scope): block.scope for block in kept.blocks.values()}.values()
    own = copy.copy(scope)
    own.localvars = copy.copy(scope.localvars)
    own.localvars._con = dict(scope.localvars._con)
    own.redefined = scope.redefined.copy()
    own.var_redefinitions = copy.deepcopy(scope.var_redefinitions)
    fresh.blocks = {label: _copied_block(block, own) for label, block in kept.blocks.items()}
    return fresh


def _copied_block(block: Any, scope: Any) -> Any:
    new = numba_ir.Block(scope, block.loc)
    new.body = [_copied(statement) for statement in block.body]
    return new


def _copied(x: Any) -> Any:
    """Statements and what they are made of; variables and constants, which nobody alters, stay."""
    if isinstance(x, numba_ir.Inst):
        new = object.__new__(type(x))
        new.__dict__.update({name: _copied(value) for name, value in x.__dict__.items()})
        return new
    if type(x) is list:
        return [_copied(value) for value in x]
    if type(x) is tuple:
        return tuple(_copied(value) for value in x)
    if type(x) is dict:
        return {name: _copied(value) for name, value in x.items()}
    return x


class _CopyOfBlocks:
    """Stands in for the module ``copy`` inside numba's inliner.

    It copies a function block by block, and with each block the table of all variables of the
    function. The table is not changed by what follows, so the copies may share it.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(copy, name)

    @staticmethod
    def deepcopy(x: Any, memo: dict[int, Any] | None = None) -> Any:
        if memo is None and isinstance(x, numba_ir.Block):
            return _copied_block(x, x.scope)
        return copy.deepcopy(x, memo)


def _same_options(self: Any, other: Any) -> Any:
    """Equality of compiler options, asked for each call in the code, without reading all of them.

    What is not set has its default.
    """
    if not isinstance(other, targetconfig.TargetConfig):
        return NotImplemented
    mine, theirs = self._values, other._values
    if type(self) is not type(other):
        return self.values() == other.values()
    for name, value in mine.items():
        if value != (theirs[name] if name in theirs else self.options[name].default):
            return False
    return all(
        value == self.options[name].default for name, value in theirs.items() if name not in mine
    )


def _options_hash(self: Any) -> int:
    """Numba hashes the names of the options, the same for all of a kind."""
    return hash(type(self))


def _rewrite_blocks(blocks: Any, states: Any, handler: Any) -> Any:
    """One variable's rewriting to single assignments: blocks that do not name it stay."""
    new = {}
    for label, block in blocks.items():
        if states["varname"] not in _names_in(block.body):
            new[label] = block
            continue
        states["label"], states["block"] = label, block
        new[label] = numba_ir.Block(scope=block.scope, loc=block.loc)
        new[label].body = [
            handler.on_assign(states, statement)
            if isinstance(statement, numba_ir.Assign)
            else handler.on_other(states, statement)
            for statement in block.body
        ]
    return new


_names: dict[int, tuple[list[Any], set[str]]] = {}  # by the id of a body, which is kept with it


def _names_in(body: list[Any]) -> set[str]:
    known = _names.get(id(body))
    if known is None:
        names = {variable.name for statement in body for variable in statement.list_vars()}
        known = _names[id(body)] = (body, names)
    return known[1]


def _to_single_assignments(blocks: Any) -> Any:
    try:
        return _run_ssa(blocks)
    finally:
        _names.clear()


def _variables_in(self: Any, value: Any) -> list[Any]:
    """The variables that a statement names, without a list for each of its constants."""
    if type(value) is dict:
        value = value.values()
    elif type(value) is not list and type(value) is not tuple:
        return [value] if type(value) is numba_ir.Var else _listed_one_by_one(self, value)
    found = []
    for x in value:
        if type(x) is numba_ir.Var:
            found.append(x)
        elif type(x) in _LISTED:
            found.extend(_variables_in(self, x))
        elif isinstance(x, numba_ir.Inst):
            found.extend(x.list_vars())
    return found


_LISTED = (dict, list, tuple)
_listed_one_by_one = numba_ir.Inst._rec_list_vars
_run_ssa = ssa._run_ssa

inline_closurecall.copy = _CopyOfBlocks()
inline_closurecall.InlineWorker.run_untyped_passes = _remembered_passes
targetconfig.TargetConfig.__eq__ = _same_options
targetconfig.TargetConfig.__hash__ = _options_hash
ssa._run_block_rewrite = _rewrite_blocks
ssa._run_ssa = _to_single_assignments
numba_ir.Inst._rec_list_vars = _variables_in
