//! Kernels of staging areas: queues that have no handle; those who name the same one meet in it.

use std::sync::Arc;

use super::resource::{self, Key};
use super::support::{Built, Computed, cheap, cpu_any};
use super::{
    ASYNC_KERNEL_TABLES, AsyncKernel, AsyncKernelDef, Completion, KERNEL_TABLES, KernelContext, KernelDef, KernelError,
    Outputs,
};
use engine_core::graph::Node;
use engine_core::queues::{Amount, Queue, QueueConfig, QueueOrder};
use engine_core::tensor::Tensor;
use engine_core::trace::Awaits;

#[linkme::distributed_slice(KERNEL_TABLES)]
static STAGING: &[KernelDef] = &[cpu_any("StageSize", size), cpu_any("StageClear", clear)];

#[linkme::distributed_slice(ASYNC_KERNEL_TABLES)]
static WAITING: &[AsyncKernelDef] = &[
    AsyncKernelDef { op: "Stage", device: "CPU", dtypes: ("", &[]), build: |n| Ok(Box::new(Stage(Area::of(n)?))) },
    AsyncKernelDef { op: "Unstage", device: "CPU", dtypes: ("", &[]), build: |n| Ok(Box::new(Unstage(Area::of(n)?))) },
    AsyncKernelDef {
        op: "StagePeek",
        device: "CPU",
        dtypes: ("", &[]),
        build: |n| Ok(Box::new(RingContents(Area::of(n)?))),
    },
];

/// Which area a node means.
struct Area {
    key: Key,
    config: QueueConfig,
}

impl Area {
    fn of(node: &Node) -> Result<Area, KernelError> {
        if *node.int("memory_limit")? > 0 {
            return Err(KernelError::invalid("memory_limit is not supported: give a capacity"));
        }
        // 0 stands for no limit.
        let capacity = usize::try_from(*node.int("capacity")?).ok().filter(|n| *n > 0).unwrap_or(i32::MAX as usize);
        let (dtypes, shapes) = (node.dtypes("dtypes")?.clone(), Vec::new());
        let config = QueueConfig { kind: "StagingArea", order: QueueOrder::Fifo, dtypes, shapes, capacity };
        Ok(Area { key: Key::of(node)?, config })
    }

    fn queue(&self, c: &KernelContext<'_>) -> Result<Arc<Queue>, KernelError> {
        let handle = self.key.object(c, || Queue::new(self.key.name.clone(), self.config.clone()))?;
        let queue = resource::object::<Queue>(&handle)?;
        match queue.config().difference(&self.config) {
            Some(difference) => Err(KernelError::invalid(format!("staging area {} {difference}", self.key.name))),
            None => Ok(queue),
        }
    }
}

struct Stage(Area);

impl AsyncKernel for Stage {
    fn start(&self, ctx: &mut KernelContext<'_>, mut done: Completion) {
        let prepared = self.0.queue(ctx).and_then(|queue| {
            let row = ctx.inputs.iter_mut().map(Option::take).collect::<Option<Vec<Tensor>>>();
            let row = row.ok_or(KernelError::MissingInput(0))?;
            queue.check(&row, false)?;
            queue.check_room(1)?;
            Ok((queue, row))
        });
        match prepared {
            Err(error) => done.finish(Err(error)),
            Ok((queue, row)) => {
                done.waits(queue.full_site(), Awaits::Room);
                let finished = Box::new(move |r: Result<(), KernelError>| done.finish(r.map(|()| Outputs::new())));
                queue.enqueue(vec![row.into()], &ctx.cancellation(), finished);
            }
        }
    }
}

struct Unstage(Area);

impl AsyncKernel for Unstage {
    fn start(&self, ctx: &mut KernelContext<'_>, mut done: Completion) {
        match self.0.queue(ctx) {
            Err(error) => done.finish(Err(error)),
            Ok(queue) => {
                done.waits(queue.empty_site(), Awaits::Row);
                let finished = move |rows: Result<Vec<engine_core::queues::Row>, KernelError>| {
                    let row = rows.and_then(|mut rows| rows.pop().ok_or(KernelError::Abandoned));
                    done.finish(row.map(|row| row.into_iter().map(Some).collect()));
                };
                queue.dequeue(Amount::Exactly(1), &ctx.cancellation(), Box::new(finished));
            }
        }
    }
}

struct RingContents(Area);

impl AsyncKernel for RingContents {
    fn start(&self, ctx: &mut KernelContext<'_>, mut done: Completion) {
        let place = |ctx: &KernelContext<'_>| -> Result<usize, KernelError> {
            let index = ctx.item::<i32>(0)?;
            usize::try_from(index).map_err(|_| KernelError::invalid(format!("index is {index}")))
        };
        match place(ctx).and_then(|place| Ok((place, self.0.queue(ctx)?))) {
            Err(error) => done.finish(Err(error)),
            Ok((place, queue)) => {
                done.waits(queue.empty_site(), Awaits::Row);
                let finished = |row: Result<engine_core::queues::Row, KernelError>| {
                    done.finish(row.map(|row| row.into_iter().map(Some).collect()));
                };
                queue.look(place, &ctx.cancellation(), Box::new(finished));
            }
        }
    }
}

fn size(node: &Node) -> Built {
    let area = Area::of(node)?;
    cheap(move |c| {
        let n = area.queue(c)?.len();
        c.set(0, Tensor::scalar(i32::try_from(n).unwrap_or(i32::MAX)));
        Ok(())
    })
}

fn clear(node: &Node) -> Built {
    let area = Area::of(node)?;
    cheap(move |c| -> Computed {
        area.queue(c)?.clear();
        Ok(())
    })
}
