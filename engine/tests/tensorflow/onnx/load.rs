//! Vectors from the packed file or the package's folder; ONNX tensors as this engine's.

use std::io::Read;
use std::path::Path;

use engine::buffer::Allocator;
use engine::dtype::{bf16, f16};
use engine::{DType, Shape, Tensor};
use formats::onnx::{ModelProto, TensorProto, ValueInfoProto};
use prost::Message;

use super::map::MapError;

/// ONNX's numbers of two element types.
const UINT16: i32 = 4;
const BFLOAT16: i32 = 16;

/// A test of the package.
pub struct Vectors {
    pub name: String,
    pub model: ModelProto,
    pub sets: Vec<Set>,
}

/// Serialised inputs and the outputs that they should give.
pub struct Set {
    pub inputs: Vec<Vec<u8>>,
    pub outputs: Vec<Vec<u8>>,
}

/// All tests there are here.
pub fn all() -> Vec<Vectors> {
    match std::env::var_os("STEPSCOPE_ONNX") {
        Some(folder) => from_folder(&Path::new(&folder).join("node")),
        None => packed(),
    }
}

fn packed() -> Vec<Vectors> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/onnx.bin.gz");
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    let mut rest = bytes.as_slice();
    fn number(rest: &mut &[u8]) -> usize {
        let (now, later) = rest.split_at(4);
        *rest = later;
        u32::from_le_bytes(now.try_into().unwrap()) as usize
    }
    fn blob(rest: &mut &[u8]) -> Vec<u8> {
        let n = number(rest);
        let (now, later) = rest.split_at(n);
        *rest = later;
        now.to_vec()
    }
    fn blobs(rest: &mut &[u8]) -> Vec<Vec<u8>> {
        (0..number(rest)).map(|_| blob(rest)).collect()
    }
    let mut all = Vec::new();
    while !rest.is_empty() {
        let name = String::from_utf8(blob(&mut rest)).unwrap();
        let model = ModelProto::decode(blob(&mut rest).as_slice()).unwrap();
        let n = number(&mut rest);
        let sets = (0..n).map(|_| Set { inputs: blobs(&mut rest), outputs: blobs(&mut rest) }).collect();
        all.push(Vectors { name, model, sets });
    }
    all
}

fn from_folder(folder: &Path) -> Vec<Vectors> {
    let sorted = |path: &Path| {
        let mut entries: Vec<_> = std::fs::read_dir(path).unwrap().map(|e| e.unwrap().path()).collect();
        entries.sort();
        entries
    };
    let files = |set: &Path, kind: &str| {
        (0..).map_while(|i| std::fs::read(set.join(format!("{kind}_{i}.pb"))).ok()).collect::<Vec<_>>()
    };
    let of = |test: &std::path::PathBuf| Vectors {
        name: test.file_name().unwrap().to_string_lossy().into_owned(),
        model: ModelProto::decode(std::fs::read(test.join("model.onnx")).unwrap().as_slice()).unwrap(),
        sets: sorted(test)
            .iter()
            .filter(|p| p.is_dir())
            .map(|set| Set { inputs: files(set, "input"), outputs: files(set, "output") })
            .collect(),
    };
    sorted(folder).iter().filter(|p| p.join("model.onnx").is_file()).map(of).collect()
}

/// The values of inputs or outputs, which must be tensors.
pub fn values(serialised: &[Vec<u8>], infos: &[ValueInfoProto]) -> Result<Vec<Option<Tensor>>, MapError> {
    let one = |(bytes, info): (&Vec<u8>, &ValueInfoProto)| {
        if info.r#type.as_ref().is_none_or(|t| t.tensor_type.is_none()) {
            return Err(MapError::Uncovered("sequences and optional values".into()));
        }
        let mut proto = TensorProto::decode(bytes.as_slice()).unwrap();
        // numpy has no bfloat16: such values are written as the integers of their bits, and only the model says what
        // they are.
        let declared = info.r#type.as_ref().and_then(|t| t.tensor_type.as_ref()).map_or(0, |t| t.elem_type);
        if (declared, proto.data_type) == (BFLOAT16, UINT16) {
            proto.data_type = BFLOAT16;
        }
        tensor(&proto).map(Some)
    };
    serialised.iter().zip(infos).map(one).collect()
}

/// The element type of this number in ONNX.
pub fn dtype(number: i64) -> Result<DType, MapError> {
    Ok(match number {
        1 => DType::F32,
        2 => DType::U8,
        3 => DType::I8,
        4 => DType::U16,
        5 => DType::I16,
        6 => DType::I32,
        7 => DType::I64,
        8 => DType::String,
        9 => DType::Bool,
        10 => DType::F16,
        11 => DType::F64,
        12 => DType::U32,
        13 => DType::U64,
        14 => DType::C64,
        15 => DType::C128,
        16 => DType::BF16,
        other => return Err(MapError::Uncovered(format!("element type {other} of ONNX"))),
    })
}

/// A tensor of ONNX's.
pub fn tensor(t: &TensorProto) -> Result<Tensor, MapError> {
    let dims: Vec<usize> = t.dims.iter().map(|d| usize::try_from(*d).unwrap()).collect();
    let (shape, dtype) = (Shape::new(&dims), dtype(i64::from(t.data_type))?);
    if dtype == DType::String {
        return Ok(Tensor::from_strings(shape, t.string_data.clone()).unwrap());
    }
    if !t.raw_data.is_empty() || shape.n_elements() == 0 {
        if dtype == DType::Bool {
            return Ok(Tensor::from_vec(shape, t.raw_data.iter().map(|b| *b != 0).collect()).unwrap());
        }
        return Ok(Tensor::from_bytes(dtype, shape, &t.raw_data, Allocator::host()).unwrap());
    }
    let ints = &t.int32_data;
    let made = match dtype {
        DType::F32 => Tensor::from_vec(shape, t.float_data.clone()),
        DType::F64 => Tensor::from_vec(shape, t.double_data.clone()),
        DType::I64 => Tensor::from_vec(shape, t.int64_data.clone()),
        DType::U64 => Tensor::from_vec(shape, t.uint64_data.clone()),
        DType::U32 => Tensor::from_vec(shape, t.uint64_data.iter().map(|v| *v as u32).collect()),
        DType::I32 => Tensor::from_vec(shape, ints.clone()),
        DType::I16 => Tensor::from_vec(shape, ints.iter().map(|v| *v as i16).collect()),
        DType::U16 => Tensor::from_vec(shape, ints.iter().map(|v| *v as u16).collect()),
        DType::I8 => Tensor::from_vec(shape, ints.iter().map(|v| *v as i8).collect()),
        DType::U8 => Tensor::from_vec(shape, ints.iter().map(|v| *v as u8).collect()),
        DType::Bool => Tensor::from_vec(shape, ints.iter().map(|v| *v != 0).collect()),
        DType::F16 => Tensor::from_vec(shape, ints.iter().map(|v| f16::from_bits(*v as u16)).collect()),
        DType::BF16 => Tensor::from_vec(shape, ints.iter().map(|v| bf16::from_bits(*v as u16)).collect()),
        other => return Err(MapError::Uncovered(format!("constants of {other}"))),
    };
    Ok(made.unwrap())
}
