//! Planted clocks: whatever the offset, the drift, its wander and the delays, the truth lies within the bounds.

use super::fact::MAX_WANDER_PER_S;
use super::*;
use proptest::prelude::*;

const S: i64 = 1_000_000_000;

/// A clock whose difference to the collector's is known exactly: offset, drift and a slow wave.
#[derive(Clone, Copy, Debug)]
struct Planted {
    offset: i64,
    drift: f64,
    /// Seconds of a wave.
    period: f64,
    /// Part of the wander that is allowed.
    wave: f64,
    phase: f64,
}

impl Planted {
    /// The collector's time at a time of the clock.
    fn truth(&self, at: i64) -> f64 {
        let seconds = at as f64 * 1e-9;
        let omega = std::f64::consts::TAU / self.period;
        // The second derivative is at most MAX_WANDER_PER_S.
        let amplitude = self.wave * MAX_WANDER_PER_S / (omega * omega) * 1e9;
        at as f64 + self.offset as f64 + self.drift * at as f64 + amplitude * (omega * seconds + self.phase).sin()
    }

    /// The clock's time at a time of the collector's.
    fn reads(&self, collector: f64) -> i64 {
        let (mut low, mut high) = (-(1i64 << 50), 1i64 << 50);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.truth(middle) < collector { low = middle + 1 } else { high = middle }
        }
        low
    }
}

fn planted() -> impl Strategy<Value = Planted> {
    (-(1i64 << 45)..1i64 << 45, -9e-4..9e-4, 5.0..300.0, 0.0..0.95, 0.0..6.3)
        .prop_map(|(offset, drift, period, wave, phase)| Planted { offset, drift, period, wave, phase })
}

/// Delays of one way: at least `base`, mostly little more, now and then much.
fn delay(base: i64, unit: (u8, u16)) -> i64 {
    let (rare, more) = unit;
    base + i64::from(more) * if rare < 40 { 300 } else { 1 }
}

type Trip = (i64, (u8, u16), (u8, u16), i64);

/// Exchanges on a simulated network: pause before, delays of both ways, time in the collector.
fn exchanges(clock: Planted, base: (i64, i64), trips: &[Trip]) -> Vec<Exchange> {
    let mut now = clock.truth(0) as i64;
    let mut made = Vec::new();
    for (pause, there, back, inside) in trips {
        now += pause;
        let request_sent = clock.reads(now as f64);
        let received = now + delay(base.0, *there);
        let sent = received + inside;
        now = sent + delay(base.1, *back);
        // Stamped by a clock that counts whole ns: after it had come.
        made.push(Exchange {
            request_sent: request_sent - 1,
            request_received: received,
            response_sent: sent,
            response_received: clock.reads(now as f64),
        });
    }
    made
}

fn trips(n: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Trip>> {
    let unit = (any::<u8>(), any::<u16>());
    prop::collection::vec((1_000_000..400_000_000i64, unit, unit, 0..100_000i64), n)
}

fn solved(exchanges: &[Exchange]) -> HostClock {
    let mut clock = HostClock::default();
    clock.add_facts(exchanges.iter().flat_map(Exchange::facts));
    clock.solve(i64::MIN);
    clock
}

fn assert_within(clock: &HostClock, planted: Planted, at: i64) -> i64 {
    let (low, high) = clock.interval(at).expect("something is known");
    let truth = planted.truth(at);
    // f64 holds times of days to a few ns.
    assert!(low as f64 - 64.0 <= truth && truth <= high as f64 + 64.0, "{low} <= {truth} <= {high} at {at}");
    high - low
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_truth_is_within_the_bound(
        planted in planted(), base in (2_000..400_000i64, 2_000..400_000i64), trips in trips(2..160), places in prop::collection::vec(-0.5..1.5f64, 8),
    ) {
        let made = exchanges(planted, base, &trips);
        let clock = solved(&made);
        prop_assert_eq!(clock.n_contradictions(), 0, "the clock is as assumed");
        let (first, last) = (made[0].request_sent, made[made.len() - 1].response_received);
        // No worse than the worst exchange alone, but for the wander.
        let trip = made.iter().map(|e| e.response_received - e.request_sent).max().unwrap_or(0) as f64 * (1.0 + 2.0 * MAX_DRIFT);
        for exchange in &made {
            let width = assert_within(&clock, planted, exchange.request_sent);
            prop_assert!((width as f64) < trip + 8.0 * wander(KNOT_NS as f64) + 1_000.0, "{} > {}", width, trip);
        }
        for place in places {
            assert_within(&clock, planted, first + ((last - first) as f64 * place) as i64);
        }
    }

    #[test]
    fn what_comes_bit_by_bit_is_as_what_comes_at_once(planted in planted(), trips in trips(3..120)) {
        let made = exchanges(planted, (30_000, 50_000), &trips);
        let mut clock = HostClock::default();
        for exchange in &made {
            clock.add_facts(exchange.facts());
            clock.solve(exchange.request_sent);
        }
        let at_once = solved(&made);
        for exchange in &made {
            prop_assert_eq!(clock.interval(exchange.request_sent), at_once.interval(exchange.request_sent));
        }
    }

    #[test]
    fn what_messages_tell_is_true(
        a in planted(), b in planted(), far in trips(20..60), near in prop::collection::vec((any::<bool>(), 0..100_000i64), 1..60),
    ) {
        // Two machines that are near each other, and far from the collector in opposite ways.
        let (mut clock_a, mut clock_b) = (solved(&exchanges(a, (5_000, 900_000), &far)), solved(&exchanges(b, (900_000, 5_000), &far)));
        let begin = a.truth(0).max(b.truth(0));
        for (n, (forth, trip)) in near.iter().enumerate() {
            let sent = begin + n as f64 * 50e6;
            let came = sent + 2_000.0 + *trip as f64;
            let (from, to) = if *forth { ((&clock_a, a), (&clock_b, b)) } else { ((&clock_b, b), (&clock_a, a)) };
            let (sent, came) = (from.1.reads(sent) - 1, to.1.reads(came));
            let (of_sender, of_receiver) = Fact::from_message((from.0, sent), (to.0, came));
            let (sender, receiver) = if *forth { (&mut clock_a, &mut clock_b) } else { (&mut clock_b, &mut clock_a) };
            sender.add_facts(of_sender);
            receiver.add_facts(of_receiver);
            sender.solve(sent);
            receiver.solve(came);
            prop_assert_eq!(sender.n_contradictions() + receiver.n_contradictions(), 0);
            let (truth_s, truth_r) = if *forth { (a, b) } else { (b, a) };
            assert_within(sender, truth_s, sent);
            assert_within(receiver, truth_r, came);
        }
    }
}

#[test]
fn messages_between_hosts_tighten_both_clocks() {
    // Each is quick in one way only, in opposite ones: of the 905 us a message the right way leaves hardly anything.
    let host = |offset, drift| Planted { offset, drift, period: 100.0, wave: 0.5, phase: 0.0 };
    let (a, b) = (host(7 * S, 3e-5), host(7 * S + S / 3, -2e-5));
    let trips: Vec<Trip> = (0..80).map(|_| (100_000_000, (255, 5), (255, 5), 50)).collect();
    let (mut clock_a, mut clock_b) =
        (solved(&exchanges(a, (5_000, 900_000), &trips)), solved(&exchanges(b, (900_000, 5_000), &trips)));
    let width = |clock: &HostClock, at| clock.interval(at).map_or(i64::MAX, |(low, high)| high - low);
    let middle = a.truth(4 * S);
    let before = [width(&clock_a, a.reads(middle)), width(&clock_b, b.reads(middle))];
    for n in 0..20 {
        let at = middle + f64::from(n) * 50e6;
        let (sent, came) = (b.reads(at) - 1, a.reads(at + 2_000.0));
        let (of_sender, of_receiver) = Fact::from_message((&clock_b, sent), (&clock_a, came));
        clock_b.add_facts(of_sender);
        clock_a.add_facts(of_receiver);
        clock_b.solve(sent);
        clock_a.solve(came);
    }
    let after = [assert_within(&clock_a, a, a.reads(middle)), assert_within(&clock_b, b, b.reads(middle))];
    assert!(before.iter().all(|w| *w > 890_000) && after.iter().all(|w| *w < 60_000), "{before:?} {after:?}");
}

#[test]
fn an_hour_of_drift_is_followed_to_a_few_microseconds() {
    // 37 ppm, a wave of the room's temperature, a network of 30 us and 170 us back with long tails.
    let planted = Planted { offset: 123 * S, drift: 37e-6, period: 600.0, wave: 0.1, phase: 1.0 };
    let trips: Vec<Trip> = (0..36_000u32)
        .map(|n| {
            let unit = |k: u32| ((n.wrapping_mul(k) >> 7) as u8, (n.wrapping_mul(k) >> 3) as u16 % 20_000);
            (100_000_000, unit(2_654_435_761), unit(2_246_822_519), 2_000)
        })
        .collect();
    let made = exchanges(planted, (30_000, 170_000), &trips);
    let clock = solved(&made);
    let widest = made.iter().step_by(97).map(|e| assert_within(&clock, planted, e.request_sent)).max();
    // The smallest trips take 200 us: half of that is what asymmetry hides from anybody.
    assert!(widest.is_some_and(|w| w < 215_000), "{widest:?}");
    assert!((clock.drift_ppb() + 37_000.0).abs() < 2_000.0, "{}", clock.drift_ppb());
    assert_eq!(clock.n_contradictions(), 0);
}

#[test]
fn a_clock_that_jumps_is_reported() {
    let still = Planted { offset: 5 * S, drift: 1e-5, period: 100.0, wave: 0.0, phase: 0.0 };
    let trips: Vec<Trip> = (0..400).map(|_| (100_000_000, (255, 9), (255, 9), 50)).collect();
    let mut made = exchanges(still, (20_000, 20_000), &trips);
    for exchange in &mut made[200..] {
        exchange.request_received += S;
        exchange.response_sent += S;
    }
    let clock = solved(&made);
    assert!(clock.n_contradictions() > 0);
    // Far from the jump nothing is wrong.
    assert_within(&clock, still, made[20].request_sent);
}

#[test]
fn files_bring_back_what_was_written_and_count_damage() {
    let dir = tempfile::tempdir().unwrap();
    let path = file::path(dir.path(), "abc");
    let exchange = |n: i64| Exchange {
        request_sent: n,
        request_received: 100 + n,
        response_sent: 101 + n,
        response_received: n + 5,
    };
    let fact = Fact { at: -7, limit: i64::MAX, kind: BoundKind::Upper };
    let mut bytes: Vec<u8> = (0..2_000).flat_map(|n| file::exchange_frame(&exchange(n))).collect();
    bytes.extend(file::fact_frame(&fact));
    let mut expected: Vec<Fact> = (0..2_000).flat_map(|n| exchange(n).facts()).collect();
    expected.push(fact);
    // In two parts, cut within a frame.
    std::fs::write(&path, &bytes[..41_007]).unwrap();
    let mut reader = ClockFile::open(&path).unwrap();
    let mut found = reader.poll().unwrap();
    std::fs::write(&path, &bytes).unwrap();
    found.extend(reader.poll().unwrap());
    assert_eq!(found, expected);
    for at in 0..400 {
        let mut damaged = bytes[..800].to_vec();
        damaged[at * 2] ^= 0x10;
        std::fs::write(&path, &damaged).unwrap();
        let mut reader = ClockFile::open(&path).unwrap();
        assert_eq!((reader.poll().unwrap().len(), reader.n_damaged()), (38, 1), "byte {}", at * 2);
    }
    // After a kill in the middle of a frame the next ones are in step again.
    std::fs::write(&path, &bytes[..50]).unwrap();
    std::io::Write::write_all(&mut file::append_to(&path).unwrap(), &file::exchange_frame(&exchange(3))).unwrap();
    let mut reader = ClockFile::open(&path).unwrap();
    assert_eq!((reader.poll().unwrap().len(), reader.n_damaged()), (4, 1));
}
