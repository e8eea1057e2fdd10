//! The white paper's names of ops (its Table 1 and figures), where TensorFlow's are others.
//!
//! A name here may be used wherever an op's is: when nodes are built and in definitions that are imported. The node's op
//! is TensorFlow's. Letter case counts. Names that the paper and TensorFlow share (`Add`, `MatMul`, `Switch`, ...) are
//! ops themselves.

/// The paper's name and TensorFlow's.
pub const ALIASES: &[(&str, &str)] = &[
    ("Constant", "Const"),
    ("Shuffle", "RandomShuffle"),
    ("SoftMax", "Softmax"),
    ("ReLU", "Relu"),
    ("Convolution2D", "Conv2D"),
    ("Enqueue", "QueueEnqueueV2"),
    ("Dequeue", "QueueDequeueV2"),
    ("MutexAcquire", "MutexLock"),
    ("MutexRelease", "ConsumeMutexLock"),
    ("Leave", "Exit"),
];

/// Every op that the paper's Table 1 names.
pub const TABLE_1: &[&str] = &[
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Exp",
    "Log",
    "Greater",
    "Less",
    "Equal",
    "Concat",
    "Slice",
    "Split",
    "Constant",
    "Rank",
    "Shape",
    "Shuffle",
    "MatMul",
    "MatrixInverse",
    "MatrixDeterminant",
    "Variable",
    "Assign",
    "AssignAdd",
    "SoftMax",
    "Sigmoid",
    "ReLU",
    "Convolution2D",
    "MaxPool",
    "Save",
    "Restore",
    "Enqueue",
    "Dequeue",
    "MutexAcquire",
    "MutexRelease",
    "Merge",
    "Switch",
    "Enter",
    "Leave",
    "NextIteration",
];

/// TensorFlow's name for one of the paper's.
pub fn resolve(name: &str) -> Option<&'static str> {
    ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, op)| *op)
}
