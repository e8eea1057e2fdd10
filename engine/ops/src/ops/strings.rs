//! String ops, logging and assertions.

use super::shapes::{Inferred, broadcast, none, reduce, scalar, unchanged};
use engine_core::ops::{InferContext, OP_TABLES, OpSpec, checks, op, stateful};
use engine_core::shape::PartialShape;

const UNARY: &str = "input: string -> output: string";

#[linkme::distributed_slice(OP_TABLES)]
static STRINGS: &[OpSpec] = &[
    op("StringJoin", "inputs: N * string -> output: string", "N: int; separator: string = ''", join),
    op(
        "StringSplit",
        "input: string, delimiter: string -> indices: int64, values: string, shape: int64",
        "skip_empty: bool = true",
        split,
    ),
    op(
        "StringSplitV2",
        "input: string, sep: string -> indices: int64, values: string, shape: int64",
        "maxsplit: int = -1",
        split,
    ),
    op(
        "StringToNumber",
        "string_tensor: string -> output: out_type",
        "out_type: {float, double, int32, int64, uint32, uint64} = float",
        unchanged,
    ),
    op(
        "AsString",
        "input: T -> output: string",
        "T: {numbers, bool, variant, string}; precision: int = -1; scientific: bool = false; \
         shortest: bool = false; width: int = -1; fill: string = ''",
        unchanged,
    ),
    op("StringLength", "input: string -> output: int32", "unit: string = 'BYTE'", unchanged),
    op(
        "Substr",
        "input: string, pos: T, len: T -> output: string",
        "T: {int32, int64}; unit: string = 'BYTE'",
        broadcast,
    ),
    op("StringStrip", UNARY, "", unchanged),
    op("StringLower", UNARY, "encoding: string = ''", unchanged),
    op("StringUpper", UNARY, "encoding: string = ''", unchanged),
    op(
        "ReduceJoin",
        "inputs: string, reduction_indices: int32 -> output: string",
        "keep_dims: bool = false; separator: string = ''",
        reduce,
    ),
    op("EncodeBase64", UNARY, "pad: bool = false", unchanged),
    op("DecodeBase64", UNARY, "", unchanged),
    op(
        "RegexReplace",
        "input: string, pattern: string, rewrite: string -> output: string",
        "replace_global: bool = true",
        unchanged,
    ),
    op("StaticRegexReplace", UNARY, "pattern: string; rewrite: string; replace_global: bool = true", unchanged),
    op("RegexFullMatch", "input: string, pattern: string -> output: bool", "", unchanged),
    op("StaticRegexFullMatch", "input: string -> output: bool", "pattern: string", unchanged),
    op(
        "StringFormat",
        "inputs: T -> output: string",
        "T: list(type); template: string = '%s'; placeholder: string = '%s'; summarize: int = 3",
        scalar,
    ),
    op("StringToHashBucketFast", "input: string -> output: int64", "num_buckets: int", unchanged),
    op("StringToHashBucketStrong", "input: string -> output: int64", "num_buckets: int; key: list(int)", unchanged),
    stateful(
        "Print",
        "input: T, data: U -> output: T",
        "T: type; U: list(type); message: string = ''; first_n: int = -1; summarize: int = 3",
        unchanged,
    ),
    stateful("PrintV2", "input: string ->", "output_stream: string = 'stderr'; end: string = '\n'", none),
    checks("Assert", "condition: bool, data: T ->", "T: list(type); summarize: int = 3", none),
];

fn join(c: &mut InferContext<'_>) -> Inferred {
    let mut shape = PartialShape::scalar();
    for i in 0..c.n_inputs() {
        let own = c.input(i);
        shape = match (own.rank(), shape.rank()) {
            (Some(0), _) => shape,
            (_, Some(0)) => own,
            _ => c.merge(&shape, &own)?,
        };
    }
    c.set(0, shape);
    Ok(())
}

fn split(c: &mut InferContext<'_>) -> Inferred {
    c.of_rank(0, 1)?;
    c.set(0, [None, Some(2)]);
    c.set(1, [None]);
    c.set(2, [2]);
    Ok(())
}
