#!/usr/bin/env python3
"""Writes valid/ and invalid/: an IR of two layers and what can be wrong with it. The files are kept in git."""

import pathlib

HERE = pathlib.Path(__file__).resolve().parent

GOOD = """<?xml version="1.0"?>
<net name="half" version="11">
    <layers>
        <layer id="0" name="x" type="Parameter" version="opset1">
            <data shape="2,3" element_type="f32"/>
            <output><port id="0" precision="FP32" names="x"><dim>2</dim><dim>3</dim></port></output>
        </layer>
        <layer id="1" name="convert" type="Convert" version="opset1">
            <data destination_type="f16"/>
            <input><port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port></input>
            <output><port id="1" precision="FP16" names="y"><dim>2</dim><dim>3</dim></port></output>
        </layer>
        <layer id="2" name="y/result" type="Result" version="opset1">
            <input><port id="0" precision="FP16"><dim>2</dim><dim>3</dim></port></input>
        </layer>
    </layers>
    <edges>
        <edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
        <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
    </edges>
</net>
"""

CONST = """        <layer id="0" name="x" type="Const" version="opset1">
            <data element_type="f32" shape="2,3" offset="0" size="24"/>
            <output><port id="0" precision="FP32" names="x"><dim>2</dim><dim>3</dim></port></output>
        </layer>
"""

PROMOTE = """<?xml version="1.0"?>
<net name="promote" version="11">
    <layers>
        <layer id="0" name="a" type="Parameter" version="opset1">
            <data shape="256,56" element_type="{a}"/>
            <output><port id="0" precision="{A}"><dim>256</dim><dim>56</dim></port></output>
        </layer>
        <layer id="1" name="b" type="Parameter" version="opset1">
            <data shape="3" element_type="{b}"/>
            <output><port id="0" precision="{B}"><dim>3</dim></port></output>
        </layer>
        <layer id="2" name="promote" type="ConvertPromoteTypes" version="opset14">
            <data promote_unsafe="{unsafe}" pytorch_scalar_promotion="false" u64_integer_promotion_target="f32"/>
            <input>
                <port id="0" precision="{A}">
                    <dim>256</dim>
                    <dim>56</dim>
                </port>
                <port id="1" precision="{B}">
                    <dim>3</dim>
                </port>
            </input>
            <output>
                <port id="2" precision="{C}" names="ConvertPromoteTypes:0">
                    <dim>256</dim>
                    <dim>56</dim>
                </port>
                <port id="3" precision="{C}" names="ConvertPromoteTypes:1">
                    <dim>3</dim>
                </port>
            </output>
        </layer>
        <layer id="3" name="r0" type="Result" version="opset1">
            <input><port id="0" precision="{C}"><dim>256</dim><dim>56</dim></port></input>
        </layer>
        <layer id="4" name="r1" type="Result" version="opset1">
            <input><port id="0" precision="{C}"><dim>3</dim></port></input>
        </layer>
    </layers>
    <edges>
        <edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
        <edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
        <edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>
        <edge from-layer="2" from-port="3" to-layer="4" to-port="0"/>
    </edges>
</net>
"""


def put(name, text, weights=None):
    path = HERE / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text) if isinstance(text, str) else path.write_bytes(text)
    if weights is not None:
        path.with_suffix(".bin").write_bytes(weights)


def changed(old, new, text=GOOD):
    assert old in text, old
    return text.replace(old, new, 1)


def constant(old="", new=""):
    start = GOOD.index('        <layer id="0"')
    end = GOOD.index('        <layer id="1"')
    return GOOD[:start] + (changed(old, new, CONST) if old else CONST) + GOOD[end:]


def promote(a, A, b, B, C, unsafe="false"):
    return PROMOTE.format(**locals())


put("valid/convert.xml", GOOD)
put("valid/version-10.xml", changed('version="11"', 'version="10"'))
put("valid/constant.xml", constant(), bytes(range(24)))
put("valid/any-shape.xml", changed('shape="2,3"', 'shape="..."'))
# The three examples of the text of ConvertPromoteTypes-14, with what it leaves out around them, and without the commas
# between attributes and the comments that are not XML.
put("valid/promote-example-1.xml", promote("f16", "FP16", "f32", "FP32", "FP32"))
put("valid/promote-example-2.xml", promote("i16", "I16", "u32", "U32", "I64", "true"))
put("valid/promote-example-3.xml", promote("i16", "I16", "u64", "U64", "FP32", "true"))

put("invalid/parse--empty.xml", "")
put("invalid/parse--not-xml.xml", "this is not XML")
put("invalid/parse--cut-off.xml", GOOD[: len(GOOD) // 2])
put("invalid/parse--other-root.xml", "<model/>")
put("invalid/parse--no-layers.xml", '<net name="n" version="11"><layers/><edges/></net>')
put("invalid/parse--no-version.xml", changed(' version="11"', ""))
put("invalid/unsupported--version-7.xml", changed('version="11"', 'version="7"'))
put("invalid/unsupported--version-12.xml", changed('version="11"', 'version="12"'))
put("invalid/parse--two-models.xml", GOOD + GOOD.split("\n", 1)[1])
bomb = '<!DOCTYPE net [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(9)) + "]>"
put("invalid/unsupported--entity-bomb.xml", changed('<net name="half"', bomb + '\n<net name="&j;"'))
put("invalid/unsupported--external-entity.xml",
    changed('<net name="half"', '<!DOCTYPE net [<!ENTITY a SYSTEM "file:///etc/passwd">]>\n<net name="&a;"'))
put("invalid/parse--nested-deeply.xml", "<a>" * 20000)
put("invalid/parse--layer-without-id.xml", changed('layer id="0" ', "layer "))
put("invalid/parse--layer-id-negative.xml", changed('layer id="0" ', 'layer id="-1" '))
put("invalid/parse--layer-id-huge.xml", changed('layer id="0" ', 'layer id="99999999999999999999" '))
put("invalid/parse--layer-id-twice.xml", changed('layer id="2" ', 'layer id="1" '))
put("invalid/parse--layer-name-twice.xml", changed('name="convert"', 'name="x"'))
put("invalid/parse--layer-without-type.xml", changed('type="Convert" ', ""))
put("invalid/unsupported--layer-type.xml", changed('type="Convert"', 'type="MatMul"'))
put("invalid/unsupported--layer-of-an-extension.xml", changed('type="Convert" version="opset1"', 'type="Convert" version="mine"'))
put("invalid/parse--data-twice.xml", changed('<data destination_type="f16"/>', '<data destination_type="f16"/>' * 2))
put("invalid/parse--attribute-twice.xml", changed('destination_type="f16"', 'destination_type="f16" destination_type="i8"'))
put("invalid/unsupported--attribute-unknown.xml", changed('destination_type="f16"', 'destination_type="f16" rounding="up"'))
put("invalid/parse--attribute-missing.xml", changed('destination_type="f16"', ""))
put("invalid/parse--type-unknown.xml", changed('destination_type="f16"', 'destination_type="f17"'))
put("invalid/unsupported--type-nf4.xml", changed('destination_type="f16"', 'destination_type="nf4"'))
put("invalid/unsupported--type-u1.xml", changed('destination_type="f16"', 'destination_type="u1"'))
put("invalid/unsupported--type-string.xml", changed('element_type="f32"', 'element_type="string"'))
put("invalid/parse--input-precision.xml", changed('<input><port id="0" precision="FP32">', '<input><port id="0" precision="I8">'))
put("invalid/parse--output-precision.xml", changed('precision="FP16" names="y"', 'precision="BF16" names="y"'))
put("invalid/parse--precision-unknown.xml", changed('precision="FP16" names="y"', 'precision="FP17" names="y"'))
put("invalid/parse--output-shape.xml", changed('names="y"><dim>2</dim>', 'names="y"><dim>4</dim>'))
put("invalid/parse--output-rank.xml", changed('names="y"><dim>2</dim>', 'names="y">'))
put("invalid/parse--dimension-not-a-number.xml", changed('names="y"><dim>2</dim>', 'names="y"><dim>two</dim>'))
put("invalid/parse--dimension-negative.xml", changed('names="y"><dim>2</dim>', 'names="y"><dim>-2</dim>'))
put("invalid/parse--shape-not-a-shape.xml", changed('shape="2,3"', 'shape="2,,3"'))
put("invalid/parse--shape-beyond-int64.xml", changed('shape="2,3"', 'shape="2,9223372036854775808"'))
put("invalid/parse--edge-from-nowhere.xml", changed('from-layer="0"', 'from-layer="7"'))
put("invalid/parse--edge-to-nowhere.xml", changed('to-layer="2"', 'to-layer="7"'))
put("invalid/parse--edge-from-missing-port.xml", changed('from-port="1"', 'from-port="5"'))
put("invalid/parse--edge-to-missing-port.xml", changed('to-layer="2" to-port="0"', 'to-layer="2" to-port="5"'))
put("invalid/parse--edge-without-port.xml", changed(' to-port="0"', ""))
put("invalid/parse--edges-into-one-port.xml", changed("    </edges>", '        <edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>\n    </edges>'))
put("invalid/parse--port-not-fed.xml", changed('        <edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>\n', ""))
put("invalid/parse--port-twice.xml", changed('<input><port id="0" precision="FP32">', '<input><port id="0"/><port id="0" precision="FP32">'))
put("invalid/parse--port-missing.xml", changed('<input><port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port></input>', ""))
put("invalid/parse--no-result.xml",
    changed('        <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>\n', "",
            GOOD[: GOOD.index('        <layer id="2"')] + GOOD[GOOD.index("    </layers>"):]))
cycle = changed('type="Parameter"', 'type="Convert"')
cycle = changed('<data shape="2,3" element_type="f32"/>', '<data destination_type="f32"/><input><port id="5"/></input>', cycle)
put("invalid/parse--cycle.xml", changed("    </edges>", '        <edge from-layer="1" from-port="1" to-layer="0" to-port="5"/>\n    </edges>', cycle))
put("invalid/parse--input-name-twice.xml", changed('name="b" type', 'name="a" type', PROMOTE).format(a="f16", A="FP16", b="f32", B="FP32", C="FP32", unsafe="false"))
put("invalid/io--weights-missing.xml", constant())
put("invalid/parse--weights-cut-off.xml", constant(), bytes(23))
put("invalid/parse--constant-size.xml", constant('size="24"', 'size="23"'), bytes(24))
put("invalid/parse--constant-offset.xml", constant('offset="0"', 'offset="18446744073709551615"'), bytes(24))
put("invalid/parse--constant-offset-negative.xml", constant('offset="0"', 'offset="-1"'), bytes(24))
put("invalid/parse--constant-size-overflows.xml", constant('shape="2,3"', 'shape="4294967296,4294967296"'), bytes(24))
put("invalid/parse--constant-shape-unknown.xml", constant('shape="2,3"', 'shape="?,3"'), bytes(24))
second = CONST.replace('id="0" name="x"', 'id="9" name="z"').replace('offset="0"', 'offset="1"').replace('names="x"', 'names="z"')
put("invalid/parse--constants-overlap.xml", constant().replace("    </layers>", second + "    </layers>"), bytes(25))
put("invalid/unsupported--promotion-refused.xml", promote("f16", "FP16", "i64", "I64", "FP16"))
put("invalid/parse--promotion-not-a-bool.xml", promote("f16", "FP16", "f32", "FP32", "FP32", "maybe"))
put("invalid/parse--promotion-other-type.xml", promote("f16", "FP16", "f32", "FP32", "FP64"))
