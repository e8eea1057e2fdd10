//! The programs in the `/host:metadata` plane: what the instructions are that the events of other planes only name.

use formats::hlo::{self, HloInstructionProto, HloModuleProto, HloProto, StackFrameIndexProto};
use formats::profile::{XPlane, XStat, x_stat};
use prost::Message;
use rustc_hash::FxHashMap;

/// The plane with the programs.
pub(super) const METADATA_PLANE: &str = "/host:metadata";

/// An instruction of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    /// The name below the framework's scopes: `jit(train)/layer/dot_general/fusion.3`.
    pub(super) node: String,
    /// The framework's op: `jit(train)/layer/dot_general`; may be empty.
    pub(super) op_name: String,
    pub(super) category: String,
    /// `file.py:12`; may be empty.
    pub(super) source: String,
}

/// Rows of [`Programs::instructions`].
#[derive(Default)]
struct Program {
    by_name: FxHashMap<String, u32>,
    /// By the name of the kernel that an instruction is compiled to; `None` where several have it.
    by_kernel: FxHashMap<String, Option<u32>>,
}

/// The instructions of all programs.
#[derive(Default)]
pub(super) struct Programs {
    by_id: FxHashMap<u64, Program>,
    instructions: Vec<Instruction>,
}

impl Programs {
    /// Adds the programs of the metadata plane. Returns how many are damaged.
    pub(super) fn add_plane(&mut self, plane: &XPlane) -> u64 {
        let mut n_damaged = 0;
        for metadata in plane.event_metadata.values() {
            let named = |name: &'static str| {
                let is_it = |stat: &&XStat| plane.stat_metadata.get(&stat.metadata_id).is_some_and(|m| m.name == name);
                metadata.stats.iter().find(is_it).and_then(|stat| stat.value.as_ref())
            };
            let Some(x_stat::Value::BytesValue(program)) = named("Hlo Proto").or(named("hlo_proto")) else { continue };
            let id = match named("program_id") {
                Some(x_stat::Value::Uint64Value(id)) => *id,
                Some(x_stat::Value::Int64Value(id)) => *id as u64,
                _ => metadata.id as u64,
            };
            match HloProto::decode(&**program).ok().and_then(|program| program.hlo_module) {
                Some(module) => self.add(id, &module),
                None => n_damaged += 1,
            }
        }
        n_damaged
    }

    fn add(&mut self, id: u64, module: &HloModuleProto) {
        let program = self.by_id.entry(id).or_default();
        let frames = module.stack_frame_index.as_ref();
        for instruction in module.computations.iter().flat_map(|computation| &computation.instructions) {
            let row = self.instructions.len() as u32;
            self.instructions.push(describe(instruction, &module.name, frames));
            program.by_name.entry(instruction.name.clone()).or_insert(row);
            let of_kernel = program.by_kernel.entry(kernel_name(&instruction.name)).or_insert(Some(row));
            if *of_kernel != Some(row) {
                *of_kernel = None;
            }
        }
    }

    /// The row of the instruction of a program with a name, else of that which a kernel was compiled from: the kernels
    /// of a command buffer are reported under the name of the buffer, which is no instruction.
    pub(super) fn find(&self, program: u64, instruction: &str, kernel: &str) -> Option<u32> {
        let program = self.by_id.get(&program)?;
        let by_kernel = || *program.by_kernel.get(kernel.strip_suffix(".kd").unwrap_or(kernel))?;
        program.by_name.get(instruction).copied().or_else(by_kernel)
    }

    pub(super) fn get(&self, row: u32) -> &Instruction {
        &self.instructions[row as usize]
    }
}

fn describe(instruction: &HloInstructionProto, module: &str, frames: Option<&StackFrameIndexProto>) -> Instruction {
    let metadata = instruction.metadata.as_ref();
    let op_name = metadata.map_or("", |metadata| &metadata.op_name);
    let source = metadata.and_then(|metadata| hlo::source(metadata, frames));
    Instruction {
        node: hlo::node_name(module, op_name, &instruction.name),
        op_name: op_name.to_owned(),
        category: hlo::category(instruction),
        source: source.map_or_else(String::new, |(file, line)| format!("{file}:{line}")),
    }
}

/// The name of the kernel that XLA compiles an instruction to: characters that symbols cannot have become `_`.
fn kernel_name(instruction: &str) -> String {
    instruction.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use formats::hlo::HloComputationProto;

    #[test]
    fn instructions_by_name_and_by_kernel() {
        let named = |name: &str| HloInstructionProto { name: name.to_owned(), ..HloInstructionProto::default() };
        let computation = HloComputationProto {
            instructions: ["fusion.2", "a.1", "a_1"].map(named).to_vec(),
            ..HloComputationProto::default()
        };
        let module = HloModuleProto { computations: vec![computation], ..HloModuleProto::default() };
        let mut programs = Programs::default();
        programs.add(7, &module);
        let found = |instruction, kernel| programs.find(7, instruction, kernel).map(|row| &*programs.get(row).node);
        assert_eq!(found("fusion.2", "anything"), Some("fusion.2"));
        assert_eq!(found("command_buffer", "fusion_2"), Some("fusion.2"));
        assert_eq!(found("command_buffer", "fusion_2.kd"), Some("fusion.2"));
        assert_eq!(found("command_buffer", "a_1"), None, "two instructions have the kernel's name");
        assert_eq!(programs.find(8, "fusion.2", ""), None);
    }
}
