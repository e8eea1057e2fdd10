//! What happens to the processes and to the network, as a seed says.

use std::time::Duration;

use threads::simulation::Simulation;

use super::Simulated;

fn some(simulation: &Simulation, at_most_ms: u64) -> Duration {
    Duration::from_millis(simulation.random(at_most_ms))
}

/// Prints what happens where one seed is looked at.
pub fn report(what: impl FnOnce() -> String) {
    if std::env::var_os("STEPSCOPE_SEED").is_some() {
        println!("{:9.3} ms: {}", threads::now() as f64 / 1e6, what());
    }
}

impl Simulated<'_> {
    /// Something goes wrong, and is well again when this returns, or some time after.
    pub fn disturb(&mut self) {
        let simulation = self.simulation.clone();
        let task = simulation.random(self.tasks.len() as u64) as usize;
        let process = self.tasks[task].process;
        let client = self.clients.len() - 1;
        let what = simulation.random(10);
        report(|| format!("fault {what}, task {task}, client {client}"));
        match what {
            0 => {
                self.network.kill(&simulation, process);
                threads::sleep(some(&simulation, 1500));
                self.restart(task);
            }
            1 => {
                self.network.lose(&simulation, process);
                threads::sleep(some(&simulation, 4000));
                self.restart(task);
            }
            2 => {
                let time = some(&simulation, 6000);
                report(|| format!("stopped for {time:?}"));
                simulation.pause(process, time);
            }
            3 | 4 => self.cut_for_a_while(simulation.random(2) == 0),
            5 => {
                let (a, b) = self.two_hosts();
                report(|| format!("{a} and {b}: reset"));
                self.network.reset(&a, &b);
            }
            6 => {
                self.network.kill(&simulation, self.clients[client].1);
                threads::sleep(some(&simulation, 500));
                self.start_client();
            }
            // Another client takes the cluster while this one is stopped, or cut off, and comes back.
            7 => {
                simulation.pause(self.clients[client].1, some(&simulation, 6000));
                threads::sleep(some(&simulation, 1000));
                self.start_client();
            }
            8 => {
                let host = self.clients[client].0.clone();
                let tasks: Vec<String> = self.tasks.iter().map(|task| task.host.clone()).collect();
                tasks.iter().for_each(|task| self.network.set_cut(&host, task, true));
                threads::sleep(some(&simulation, 1000));
                self.start_client();
                threads::sleep(some(&simulation, 4000));
                tasks.iter().for_each(|task| self.network.set_cut(&host, task, false));
            }
            // Two at once.
            _ => {
                simulation.pause(process, some(&simulation, 3000));
                self.cut_for_a_while(simulation.random(2) == 0);
            }
        }
    }

    /// Something hangs, for longer than it takes to notice: a task, its host, or the way between two hosts that talk.
    pub fn hang(&mut self) {
        let simulation = self.simulation.clone();
        let task = simulation.random(self.tasks.len() as u64) as usize;
        let process = self.tasks[task].process;
        match simulation.random(4) {
            0 => simulation.pause(process, Duration::from_secs(60)),
            1 => self.network.lose(&simulation, process),
            both => {
                let host = |task: usize| self.tasks[task].host.clone();
                let other =
                    if task > 0 && simulation.random(2) == 0 { host(task - 1) } else { self.clients[0].0.clone() };
                let (a, b) = if simulation.random(2) == 0 { (host(task), other) } else { (other, host(task)) };
                self.network.set_cut(&a, &b, true);
                if both == 2 {
                    self.network.set_cut(&b, &a, true);
                }
            }
        }
    }

    fn two_hosts(&self) -> (String, String) {
        let tasks = self.tasks.iter().map(|task| task.host.clone());
        let mut all: Vec<String> = tasks.chain(self.clients.last().map(|(host, _)| host.clone())).collect();
        let a = all.swap_remove(self.simulation.random(all.len() as u64) as usize);
        (a, all.swap_remove(self.simulation.random(all.len() as u64) as usize))
    }

    fn cut_for_a_while(&self, both: bool) {
        let (a, b) = self.two_hosts();
        for is_cut in [true, false] {
            report(|| {
                format!("{a} to {b}{}: {}", if both { " and back" } else { "" }, if is_cut { "cut" } else { "well" })
            });
            self.network.set_cut(&a, &b, is_cut);
            if both {
                self.network.set_cut(&b, &a, is_cut);
            }
            if is_cut {
                threads::sleep(some(self.simulation, 6000));
            }
        }
    }
}
