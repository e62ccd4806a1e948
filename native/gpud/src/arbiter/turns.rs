//! Whose turn it is on a device that several leases share: the rules alone, without clock, threads or memory.
//!
//! A lease that is alone holds the device without a question.  While another waits, the device is one lease's at a
//! time, and every lease's *virtual time* runs while it holds the device, the faster the smaller its share.  A turn
//! ends when the holder is far enough ahead of the one that waits, or has had nothing to do for a moment; a kernel
//! that runs on past the end of its turn is waited for, and its time is charged.  That is start-time fair queuing
//! over measured time, with the anticipation that disk schedulers use for processes that issue one request after the
//! other.

use std::collections::BTreeMap;
use std::time::Duration;

/// How long a turn is among leases with equal shares.
const QUANTUM: Duration = Duration::from_millis(20);
/// The turn of a large share among many small ones is so long at most.
const LONGEST: f64 = 4.0 * QUANTUM.as_secs_f64();
/// How long the device is kept at least for a holder that has nothing to do: a program that waits for each kernel is
/// back by then.
const ANTICIPATION: Duration = Duration::from_millis(1);
/// A holder with much time left is waited for longer, up to this part of it: one short absence must not cost it a turn
/// that a long kernel of another made long.
const PATIENCE: f64 = 1.0 / 16.0;
/// How long a holder is waited for at most.
const MOST_ANTICIPATION: Duration = Duration::from_millis(10);
/// Who was away for less is still owed what it did not get.
const ABSENCE: Duration = Duration::from_millis(100);
/// What a lease owes, or is owed, from the last time it competed is remembered up to this much.
const MOST_DEBT: Duration = Duration::from_millis(500);
/// Work that runs on so long after the end of its turn may wait for another lease's: that one is let in beside it.
const STALL: Duration = Duration::from_secs(2);

/// A lease's number in the order in which leases came.
pub type Key = u64;

/// What a lease wants of the device.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    /// Its share: thousandths of the device.
    pub milli: u32,
    /// Operations on the device.
    pub running: u32,
    /// Operations that wait for its turn.
    pub waiting: u32,
    /// How long nothing has been running or waiting.
    pub idle: Duration,
}

impl Demand {
    fn is_idle(&self) -> bool {
        self.running == 0 && self.waiting == 0
    }

    fn weight(&self) -> f64 {
        f64::from(self.milli.max(1)) / 1000.0
    }
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The one lease that may begin work; it keeps the device while nobody else wants it.
    pub open: Option<Key>,
    /// Whether others wait.
    pub contended: bool,
    /// Ask again after this time, if nobody rings before.
    pub again: Option<Duration>,
}

/// What a lease got while others waited, and what its share of that time was.
#[derive(Clone, Copy, Debug, Default)]
pub struct Account {
    /// Time on the device over the share.
    virtual_time: f64,
    active: bool,
    pub delivered: Duration,
    pub promised: Duration,
}

/// The state between two verdicts.
#[derive(Debug, Default)]
pub struct Turns {
    accounts: BTreeMap<Key, Account>,
    open: Option<Key>,
    /// Leases whose turn is over and whose work still runs, since when.
    draining: BTreeMap<Key, Duration>,
    contended: bool,
    last: Duration,
}

impl Turns {
    /// What a lease got and should have got.
    pub fn account(&self, key: Key) -> Account {
        self.accounts.get(&key).copied().unwrap_or_default()
    }

    /// Decides at `now` (since any beginning) from what the leases want.
    pub fn decide(&mut self, now: Duration, demands: &BTreeMap<Key, Demand>) -> Verdict {
        self.charge(now, demands);
        self.accounts.retain(|key, _| demands.contains_key(key));
        self.draining.retain(|key, _| demands.get(key).is_some_and(|demand| demand.running > 0));
        self.open = self.open.filter(|key| demands.contains_key(key));
        self.wake(demands);
        loop {
            let rival = demands.iter().filter(|(key, demand)| demand.waiting > 0 && self.open != Some(**key));
            let rival = rival.map(|(key, _)| *key).min_by(|a, b| self.time_of(*a).total_cmp(&self.time_of(*b)));
            self.contended = rival.is_some();
            let Some(rival) = rival else { return self.verdict(None) };
            let Some(holder) = self.open else {
                match self.stalls_in(now) {
                    Some(left) if !left.is_zero() => return self.verdict(Some(left)),
                    _ => self.open = Some(rival),
                }
                continue;
            };
            match self.turn_left(holder, rival, demands) {
                Some(left) => return self.verdict(Some(left)),
                None => {
                    self.open = None;
                    if demands.get(&holder).is_some_and(|demand| demand.running > 0) {
                        self.draining.insert(holder, now);
                        // Work that began while this was decided is seen by looking again once the door is shut.
                        return self.verdict(Some(Duration::ZERO));
                    }
                }
            }
        }
    }

    fn verdict(&self, again: Option<Duration>) -> Verdict {
        Verdict { open: self.open, contended: self.contended, again }
    }

    fn time_of(&self, key: Key) -> f64 {
        self.accounts.get(&key).map_or(0.0, |account| account.virtual_time)
    }

    /// How long until all work that runs past its turn counts as stalled; `None` when there is none.
    fn stalls_in(&self, now: Duration) -> Option<Duration> {
        self.draining.values().map(|since| (*since + STALL).saturating_sub(now)).max()
    }

    /// How long the holder may go on before the next look, or `None` when its turn is over.
    fn turn_left(&self, holder: Key, rival: Key, demands: &BTreeMap<Key, Demand>) -> Option<Duration> {
        let demand = demands.get(&holder)?;
        let lead = self.time_of(holder) - self.time_of(rival);
        let left = (self.most_lead(demands) - lead) * demand.weight();
        let patience = Duration::from_secs_f64(left.max(0.0) * PATIENCE).clamp(ANTICIPATION, MOST_ANTICIPATION);
        if left <= 0.0 || (demand.is_idle() && demand.idle >= patience) {
            return None;
        }
        let pause = if demand.is_idle() { patience - demand.idle } else { ANTICIPATION };
        Some(Duration::from_secs_f64(left).clamp(Duration::from_micros(50), pause.max(Duration::from_micros(50))))
    }

    /// The lead that ends a turn: turns are as long as shares are large, and a round takes the quantum times the number
    /// of leases.  A lead that did not grow with their number would make turns shorter the more there are, and each
    /// change of turn costs the device the time in which two processes wake.  A large share among many small ones is
    /// kept from holding the device for a whole such round.
    fn most_lead(&self, demands: &BTreeMap<Key, Demand>) -> f64 {
        let active = demands.iter().filter(|(key, _)| self.accounts.get(key).is_some_and(|account| account.active));
        let weights: Vec<f64> = active.map(|(_, demand)| demand.weight()).collect();
        let (count, total) = (weights.len() as f64, weights.iter().sum::<f64>().max(0.001));
        let quantum = QUANTUM.as_secs_f64();
        let longest = weights.into_iter().fold(0.0, f64::max) / total * count * quantum;
        let room = f64::min(1.0, LONGEST / longest.max(quantum));
        quantum * f64::max((count - 1.0) * room, 1.0) / total
    }

    /// Charges the time since the last look to those that held the device.
    fn charge(&mut self, now: Duration, demands: &BTreeMap<Key, Demand>) {
        let passed = now.saturating_sub(self.last);
        self.last = now;
        if !self.contended {
            return;
        }
        let active: Vec<Key> =
            self.accounts.iter().filter(|(_, account)| account.active).map(|(key, _)| *key).collect();
        let weight = |key: &Key| demands.get(key).map_or(0.0, Demand::weight);
        let total: f64 = active.iter().map(weight).sum();
        for key in self.open.iter().chain(self.draining.keys()) {
            if let Some(account) = self.accounts.get_mut(key) {
                account.virtual_time += passed.as_secs_f64() / weight(key).max(0.001);
                account.delivered += passed;
            }
        }
        for key in active.iter().filter(|_| total > 0.0) {
            if let Some(account) = self.accounts.get_mut(key) {
                account.promised += passed.mul_f64(weight(key) / total);
            }
        }
    }

    /// A lease that comes back to the competition neither saves up what it did not use nor pays for long ago.
    fn wake(&mut self, demands: &BTreeMap<Key, Demand>) {
        let floor = self.accounts.values().filter(|account| account.active).map(|account| account.virtual_time);
        let floor = floor.min_by(f64::total_cmp);
        for (key, demand) in demands {
            let account = self.accounts.entry(*key).or_default();
            let active = !demand.is_idle() || (self.open == Some(*key) && demand.idle < MOST_ANTICIPATION);
            if active
                && !account.active
                && let Some(floor) = floor
            {
                let most = MOST_DEBT.as_secs_f64() / demand.weight();
                let credit = if demand.idle < ABSENCE { most } else { QUANTUM.as_secs_f64() };
                account.virtual_time = account.virtual_time.clamp(floor - credit, floor + most);
            }
            account.active = active;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICROSECOND: Duration = Duration::from_micros(1);

    /// A program that issues `depth` kernels ahead and needs a moment between an answer and the next issue.
    #[derive(Clone, Copy)]
    struct Program {
        milli: u32,
        kernel: Duration,
        gap: Duration,
        /// Idle for so long after every hundred kernels.
        rest: Duration,
        depth: u32,
    }

    const fn busy(milli: u32, kernel_us: u64) -> Program {
        let (gap, rest) = (Duration::ZERO, Duration::ZERO);
        Program { milli, kernel: Duration::from_micros(kernel_us), gap, rest, depth: 8 }
    }

    #[derive(Clone, Copy, Default)]
    struct Run {
        ends: Option<Duration>,
        queued: u32,
        issue_at: Option<Duration>,
        idle_since: Duration,
        done: u32,
    }

    /// Kernels that each program finished in `time`, on a device that works for every lease whose work runs, each at
    /// full speed (as the arbiter lets one at a time, that is no more than the device can do).
    fn simulate(programs: &[Program], time: Duration, arbitrated: bool) -> (Vec<u32>, Turns) {
        let mut turns = Turns::default();
        let mut runs = vec![Run::default(); programs.len()];
        for (run, program) in runs.iter_mut().zip(programs) {
            run.queued = program.depth;
        }
        let mut now = Duration::ZERO;
        let mut open = None;
        while now < time {
            loop {
                for (index, (run, program)) in runs.iter_mut().zip(programs).enumerate() {
                    if run.ends.is_some_and(|ends| ends <= now) {
                        run.ends = None;
                        run.done += 1;
                        run.idle_since = now;
                        let rest = if run.done % 100 == 0 { program.rest } else { Duration::ZERO };
                        run.issue_at = Some(now + program.gap + rest);
                    }
                    if run.issue_at.is_some_and(|at| at <= now) {
                        run.issue_at = None;
                        run.queued += 1;
                    }
                    if run.ends.is_none() && run.queued > 0 && (!arbitrated || open == Some(index as Key)) {
                        run.queued -= 1;
                        run.ends = Some(now + program.kernel);
                    }
                }
                let demands = runs.iter().zip(programs).enumerate().map(|(index, (run, program))| {
                    let running = u32::from(run.ends.is_some());
                    let waiting =
                        if open == Some(index as Key) { 0 } else { u32::from(run.queued > 0 && running == 0) };
                    let idle = now.saturating_sub(run.idle_since);
                    (index as Key, Demand { milli: program.milli, running, waiting, idle })
                });
                let verdict = turns.decide(now, &demands.collect());
                if !arbitrated || verdict.open == open {
                    break;
                }
                open = verdict.open;
            }
            now += MICROSECOND * 20;
        }
        (runs.iter().map(|run| run.done).collect(), turns)
    }

    /// The share of its own speed that each program reached.
    fn shares(programs: &[Program], arbitrated: bool) -> Vec<f64> {
        let time = Duration::from_secs(4);
        let (together, _) = simulate(programs, time, arbitrated);
        let alone = programs.iter().map(|program| simulate(&[*program], time, arbitrated).0[0]);
        together.iter().zip(alone).map(|(done, alone)| f64::from(*done) / f64::from(alone)).collect()
    }

    #[track_caller]
    fn assert_shares(programs: &[Program], expected: &[f64]) {
        let got = shares(programs, true);
        for (share, expected) in got.iter().zip(expected) {
            assert!((share - expected).abs() <= 0.03, "{got:.3?} instead of {expected:.3?}");
        }
        assert!(got.iter().sum::<f64>() >= 0.97, "{got:.3?} add up to too little");
    }

    #[test]
    fn busy_neighbours_get_their_shares() {
        assert_shares(&[busy(300, 1_000), busy(700, 1_000)], &[0.3, 0.7]);
        assert_shares(&[busy(100, 500), busy(900, 500)], &[0.1, 0.9]);
        assert_shares(&[busy(500, 2_000), busy(500, 300)], &[0.5, 0.5]);
        assert_shares(&[busy(250, 700); 4], &[0.25; 4]);
    }

    /// How long each turn of leases that always work took, in two seconds; a kernel ends as soon as its turn does.
    fn turns_of(shares: &[u32]) -> Vec<Duration> {
        let (mut turns, mut open, mut since, mut took) = (Turns::default(), None, Duration::ZERO, Vec::new());
        for now in (0..20_000).map(|step| Duration::from_micros(step * 100)) {
            let of = |(key, milli): (usize, &u32)| {
                let waiting = u32::from(open != Some(key as Key));
                (key as Key, Demand { milli: *milli, running: 1 - waiting, waiting, idle: Duration::ZERO })
            };
            let mut demands: BTreeMap<Key, Demand> = shares.iter().enumerate().map(of).collect();
            let mut verdict = turns.decide(now, &demands);
            if verdict.open.is_none() {
                demands.values_mut().for_each(|demand| (demand.running, demand.waiting) = (0, 1));
                verdict = turns.decide(now, &demands);
            }
            if verdict.open != open {
                took.push(now - since);
                (open, since) = (verdict.open, now);
            }
        }
        took
    }

    #[test]
    fn turns_do_not_get_shorter_with_more_leases() {
        for count in [2, 4, 10] {
            let turn = Duration::from_secs(2) / turns_of(&vec![1_000 / count; count as usize]).len() as u32;
            assert!(turn.abs_diff(QUANTUM) < QUANTUM / 4, "{count} leases: turns of {turn:?}");
        }
    }

    #[test]
    fn a_large_share_does_not_keep_many_small_ones_waiting_for_long() {
        let shares = [&[910][..], &[10; 9]].concat();
        let longest = turns_of(&shares).into_iter().max().expect("turns");
        assert!(longest <= QUANTUM * 5, "a turn of {longest:?}");
        assert!(longest >= QUANTUM * 2, "the large share is served in turns of {longest:?}");
    }

    #[test]
    fn shares_that_leave_something_free_are_stretched() {
        assert_shares(&[busy(200, 1_000), busy(200, 1_000)], &[0.5, 0.5]);
    }

    #[test]
    fn long_kernels_pay_for_their_length() {
        assert_shares(&[busy(500, 60), busy(500, 200_000)], &[0.5, 0.5]);
    }

    #[test]
    fn a_program_that_waits_for_each_kernel_keeps_its_share() {
        let waits = Program { gap: Duration::from_micros(400), depth: 1, ..busy(500, 600) };
        assert_shares(&[waits, busy(500, 5_000)], &[0.5, 0.5]);
    }

    #[test]
    fn a_program_far_away_keeps_its_share() {
        let waits = Program { gap: Duration::from_micros(1_500), depth: 1, ..busy(500, 600) };
        assert_shares(&[waits, busy(500, 5_000)], &[0.5, 0.5]);
    }

    #[test]
    fn short_absences_do_not_cost_a_turn_beside_long_kernels() {
        let rests = Program { rest: Duration::from_millis(3), ..busy(500, 50) };
        assert_shares(&[rests, busy(500, 200_000)], &[0.5, 0.5]);
    }

    #[test]
    fn an_idle_neighbour_costs_nothing() {
        let rests = Program { rest: Duration::from_secs(60), depth: 1, ..busy(500, 100) };
        let got = shares(&[busy(500, 1_000), rests], true);
        assert!(got[0] >= 0.98, "{got:.3?}");
    }

    #[test]
    fn without_the_arbiter_shares_do_not_hold() {
        let got = shares(&[busy(300, 1_000), busy(700, 1_000)], false);
        assert!((got[0] - 0.3).abs() > 0.03, "{got:.3?}");
    }

    #[test]
    fn a_lease_that_slept_has_saved_nothing_up() {
        let (_, turns) = simulate(&[busy(500, 1_000), busy(500, 1_000)], Duration::from_secs(1), true);
        let ahead = turns.account(0).virtual_time;
        let mut turns = turns;
        let demand = |waiting| Demand { milli: 500, running: 0, waiting, idle: Duration::from_secs(9) };
        let now = Duration::from_secs(10);
        turns.decide(now, &BTreeMap::from([(0, demand(1)), (1, demand(0)), (2, demand(1))]));
        let fresh = turns.account(2).virtual_time;
        assert!(fresh >= ahead - 2.0 * QUANTUM.as_secs_f64(), "{fresh} behind {ahead}");
    }

    #[test]
    fn work_that_does_not_end_lets_the_next_in_beside_it() {
        let mut turns = Turns::default();
        let demand = |running, waiting| Demand { milli: 500, running, waiting, idle: Duration::ZERO };
        let at = Duration::from_millis;
        assert_eq!(turns.decide(at(0), &BTreeMap::from([(0, demand(0, 1)), (1, demand(0, 0))])).open, Some(0));
        let both = BTreeMap::from([(0, demand(1, 0)), (1, demand(0, 1))]);
        assert_eq!(turns.decide(at(1), &both).open, Some(0));
        assert_eq!(turns.decide(at(100), &both), Verdict { open: None, contended: true, again: Some(Duration::ZERO) });
        assert_eq!(turns.decide(at(100), &both).again, Some(STALL));
        assert_eq!(turns.decide(at(2_200), &both).open, Some(1), "what it waits for may be the other's work");
    }

    #[test]
    fn what_was_delivered_and_promised_is_kept() {
        let (_, turns) = simulate(&[busy(300, 1_000), busy(700, 1_000)], Duration::from_secs(10), true);
        for key in [0, 1] {
            let Account { delivered, promised, .. } = turns.account(key);
            let off = delivered.as_secs_f64() - promised.as_secs_f64();
            assert!(promised > Duration::from_secs(2) && off.abs() < 0.3, "{delivered:?} of {promised:?}");
        }
    }
}
