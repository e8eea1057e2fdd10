//! The logs that loading is measured on, the same in every run: what torch and TensorFlow 2 write, record by record.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use formats::proto::{
    DataType, Event, Summary, SummaryMetadata, TensorProto, TensorShapeProto, event::What, summary,
    summary_metadata::PluginData, tensor_shape_proto::Dim,
};
use formats::tfrecord::append_record;
use prost::Message;

/// A set of runs.
#[derive(Clone, Copy)]
pub struct Log {
    pub name: &'static str,
    n_runs: usize,
    n_tags: usize,
    n_steps: i64,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// torch: a `simple_value` per event.
    Simple,
    /// TensorFlow 2: a scalar tensor with metadata per event.
    Tensor,
    /// TensorFlow 2: a tensor of shape `[30, 3]` with metadata per event.
    Histogram,
}

/// The three of the issue, and many small runs.
pub const LOGS: &[Log] = &[
    Log { name: "1 run x 100 tags x 100k steps", n_runs: 1, n_tags: 100, n_steps: 100_000, kind: Kind::Simple },
    Log { name: "100 runs x 50 tags x 1k steps", n_runs: 100, n_tags: 50, n_steps: 1_000, kind: Kind::Tensor },
    Log { name: "50 histogram tags x 2k steps", n_runs: 1, n_tags: 50, n_steps: 2_000, kind: Kind::Histogram },
    Log { name: "10,000 runs x 2 tags x 20 steps", n_runs: 10_000, n_tags: 2, n_steps: 20, kind: Kind::Simple },
];

impl Log {
    /// How many points it has.
    pub fn n_points(&self) -> usize {
        self.n_runs * self.n_tags * self.n_steps as usize
    }

    /// Whether each record is a number.
    pub fn is_scalar(&self) -> bool {
        self.kind != Kind::Histogram
    }

    /// Writes it below `folder`; how many bytes.
    pub fn write(&self, folder: &Path) -> io::Result<u64> {
        let mut n_bytes = 0;
        for run in 0..self.n_runs {
            let run_folder = folder.join(format!("run{run}"));
            fs::create_dir_all(&run_folder)?;
            let mut out = BufWriter::new(File::create(run_folder.join("events.out.tfevents.1700000000.bench.1.0"))?);
            let mut record = Vec::new();
            for step in 0..self.n_steps {
                record.clear();
                for tag in 0..self.n_tags {
                    append_record(&mut record, &self.event(tag, step).encode_to_vec());
                }
                n_bytes += record.len() as u64;
                out.write_all(&record)?;
            }
            out.flush()?;
        }
        Ok(n_bytes)
    }

    fn event(&self, tag: usize, step: i64) -> Event {
        let x = (step as f32 * 0.001 + tag as f32).sin();
        let (value, plugin) = match self.kind {
            Kind::Simple => (summary::value::Value::SimpleValue(x), None),
            Kind::Tensor => (summary::value::Value::Tensor(tensor(&[], &[x])), Some("scalars")),
            Kind::Histogram => {
                let rows: Vec<f32> =
                    (0..30).flat_map(|i| [i as f32 + x, i as f32 + 1.0 + x, (i * (30 - i)) as f32]).collect();
                (summary::value::Value::Tensor(tensor(&[30, 3], &rows)), Some("histograms"))
            }
        };
        let plugin_data = plugin.map(|name| PluginData { plugin_name: name.into(), content: Vec::new() });
        let value = summary::Value {
            tag: format!("group{}/metric_{tag}", tag % 7),
            metadata: plugin_data.map(|data| SummaryMetadata { plugin_data: Some(data), ..SummaryMetadata::default() }),
            value: Some(value),
            ..summary::Value::default()
        };
        let what = Some(What::Summary(Summary { value: vec![value] }));
        Event { wall_time: 1.7e9 + step as f64 * 0.05 + tag as f64 * 1e-4, step, what, source_metadata: None }
    }
}

fn tensor(dims: &[i64], values: &[f32]) -> TensorProto {
    let dim = dims.iter().map(|&size| Dim { size, name: String::new() }).collect();
    TensorProto {
        dtype: DataType::DtFloat.into(),
        tensor_shape: Some(TensorShapeProto { dim, unknown_rank: false }),
        tensor_content: values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        ..TensorProto::default()
    }
}
