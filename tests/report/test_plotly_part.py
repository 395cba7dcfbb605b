# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""What a page holds of Plotly: the modules of its core and of bars."""

from plotly.offline import get_plotlyjs

from gpuprof.report.html import plotly_part

HEAD = '"use strict";var Plotly=(()=>{var W=(e,t)=>()=>t,E=(e,t)=>()=>e;'
CORE = "var core=W((e,t)=>{t.exports={register(){helped()}}});"
BARS = 'var bar=W((e,t)=>{t.exports={moduleType:"trace",name:"bar",plot:shape()}});'
SHAPE = "var shape=W(e=>{e.draw=(init(),inner)});"
#: The functions of an ES module, and what fills it, stand behind another's end.
HELPED = "var helped=W((e,t)=>{});function inner(){}var a,b,init=E(()=>{a=1});"
PIES = 'var pie=W((e,t)=>{t.exports={moduleType:"trace",name:"pie",plot:slices()}});var slices=W(e=>{});'
MAPS = "var map=W((e,t)=>{earth()});function sphere(){}var earth=E(()=>{sphere()});"
ALL = "var all=W((e,t)=>{var r=core();r.register([bar(),pie(),map()]);t.exports=r});"
TAIL = "return all();})();/* its licenses */"


def test_modules_that_only_other_charts_call_are_left_out() -> None:
    whole = HEAD + CORE + BARS + SHAPE + HELPED + PIES + MAPS + ALL + TAIL
    registers_bars = ALL.replace("[bar(),pie(),map()]", "[bar()]")
    assert plotly_part(whole) == HEAD + CORE + BARS + SHAPE + HELPED + registers_bars + TAIL


def test_a_bundle_of_another_build_is_kept_whole() -> None:
    for bundle in (
        "",
        "var Plotly={};",
        HEAD + CORE + BARS + SHAPE + HELPED + TAIL,
        HEAD + CORE + SHAPE + HELPED + ALL + TAIL,
    ):
        assert plotly_part(bundle) == bundle


def test_of_the_installed_plotly_a_third_is_left_with_its_core_bars_and_licenses() -> None:
    bundle = get_plotlyjs()
    part = plotly_part(bundle)
    assert len(part) < len(bundle) / 3
    assert 'name:"bar"' in part
    assert 'name:"scatter"' in part
    assert 'name:"scatter3d"' not in part
    assert part.count("license") > 10
    assert "this, (() => {" in part
