//! Whose turn it is on a device that several leases share: the rules alone, without clock, threads or memory.
//!
//! A lease that is alone holds the device without a question.  While another waits, the device is one lease's at a
//! time, and every lease's *virtual time* runs while it holds the device, the faster the smaller its share.  A turn
//! ends when the holder is far enough ahead of the one that waits, or has had nothing to do for a moment; a kernel
//! that runs on past the end of its turn is waited for, and its time is charged.  That is start-time fair queuing
//! over measured time, with the anticipation that disk schedulers use for processes that issue one request after the
//! other.
//!
//! A lease may have a *ceiling*: a part of the device's time that it never gets more than, also while it is alone.  What
//! it was on the device beyond that part is its over-run.  One of a quantum ends its turn, and the lease rests until
//! nothing is left of it.  A lease without a ceiling is not looked at for this.

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
/// Looks at a lease with a ceiling come at uneven times, or a program with a beat would always be seen at the same point
/// of it: the golden ratio spreads them.
const UNEVEN: f64 = 0.618_034;
/// No look follows another sooner, unless work may have begun since.
const SOONEST: Duration = Duration::from_micros(50);

/// A lease's number in the order in which leases came.
pub type Key = u64;

/// What a lease wants of the device.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    /// Its share: thousandths of the device.
    pub milli: u32,
    /// Thousandths of the device's time that it never gets more than; 1000 is no ceiling.
    pub ceiling_milli: Option<u32>,
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

    /// The part of the device's time that it never gets more than.
    fn ceiling(&self) -> Option<f64> {
        self.ceiling_milli.filter(|milli| *milli < 1000).map(|milli| f64::from(milli.max(1)) / 1000.0)
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

/// What a lease got while others waited, and what its share of that time was, as far as its ceiling allows it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Account {
    /// Time on the device over the share.
    virtual_time: f64,
    active: bool,
    /// Seconds on the device beyond what the ceiling allows; below zero, what others kept it from.
    overrun: f64,
    /// The over-run at which its turn ends.
    bound: f64,
    /// Whether it had work on the device, and before the door, at the last look: known of a lease with a ceiling.
    ran: bool,
    waited: bool,
    /// How much later than half of [`ANTICIPATION`] the next look comes, as a part of it.
    beat: f64,
    /// Whether it has had what its ceiling allows.
    rests: bool,
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
        let passed = now.saturating_sub(self.last);
        self.last = now;
        self.charge(passed, demands);
        self.accounts.retain(|key, _| demands.contains_key(key));
        self.draining.retain(|key, _| demands.get(key).is_some_and(|demand| demand.running > 0));
        self.open = self.open.filter(|key| demands.contains_key(key));
        self.meter(now, passed, demands);
        self.wake(demands);
        loop {
            let waits = demands.iter().filter(|(key, demand)| demand.waiting > 0 && self.open != Some(**key));
            let waits = waits.map(|(key, _)| *key);
            let rival = waits.clone().filter(|key| self.may_begin(now, *key));
            let rival = rival.min_by(|a, b| self.time_of(*a).total_cmp(&self.time_of(*b)));
            self.contended = rival.is_some() || waits.clone().any(|key| self.others_are_active(key));
            let Some(holder) = self.open else {
                let Some(rival) = rival else { return self.verdict(None, now, demands) };
                match self.stalls_in(now) {
                    Some(left) if !left.is_zero() => return self.verdict(Some(left), now, demands),
                    _ => self.begin(rival),
                }
                continue;
            };
            let left = rival.map(|rival| self.turn_left(holder, rival, demands));
            let left = shorter(left, self.ceiling_left(holder, demands));
            if left != Some(Duration::ZERO) {
                return self.verdict(left, now, demands);
            }
            self.open = None;
            if demands.get(&holder).is_some_and(|demand| demand.running > 0) {
                self.draining.insert(holder, now);
            } else if rival.is_some() {
                continue;
            }
            // Work that began while this was decided is seen by looking again once the door is shut.
            return self.verdict(Some(Duration::ZERO), now, demands);
        }
    }

    fn verdict(&self, again: Option<Duration>, now: Duration, demands: &BTreeMap<Key, Demand>) -> Verdict {
        let again = shorter(again, self.rests_end_in(now, demands));
        Verdict { open: self.open, contended: self.contended, again }
    }

    fn time_of(&self, key: Key) -> f64 {
        self.accounts.get(&key).map_or(0.0, |account| account.virtual_time)
    }

    /// How long until all work that runs past its turn counts as stalled; `None` when there is none.
    fn stalls_in(&self, now: Duration) -> Option<Duration> {
        self.draining.values().map(|since| (*since + STALL).saturating_sub(now)).max()
    }

    /// Opens the door of a lease that waits before it.
    fn begin(&mut self, key: Key) {
        self.open = Some(key);
        // What runs on of its last turn is of this one now, and is charged once.
        self.draining.remove(&key);
        if let Some(account) = self.accounts.get_mut(&key) {
            // Who may work although it has over-run gets a whole turn: it may need many operations.
            account.bound = QUANTUM.as_secs_f64() + if account.rests { account.overrun } else { 0.0 };
            (account.ran, account.rests) = (true, false);
        }
    }

    /// Whether a lease may have a turn.  One that rests may if its own work has not ended for long, as that may wait
    /// for work before the door; the more it has over-run, the longer, so that this comes to an end.
    fn may_begin(&self, now: Duration, key: Key) -> bool {
        let Some(account) = self.accounts.get(&key).filter(|account| account.rests) else { return true };
        let patience = STALL.as_secs_f64().max(account.overrun);
        self.draining.get(&key).is_some_and(|since| now.saturating_sub(*since).as_secs_f64() >= patience)
    }

    /// Whether there is competition for what a lease waits for.
    fn others_are_active(&self, key: Key) -> bool {
        self.accounts.iter().any(|(other, account)| *other != key && account.active)
    }

    /// How long until the first of the leases that wait may have a turn again; `None` when none of them rests.
    fn rests_end_in(&self, now: Duration, demands: &BTreeMap<Key, Demand>) -> Option<Duration> {
        let ends = demands.iter().filter(|(_, demand)| demand.waiting > 0).filter_map(|(key, demand)| {
            let (ceiling, account) = (demand.ceiling()?, self.accounts.get(key).filter(|account| account.rests)?);
            let rest = account.overrun / ceiling;
            // What still runs grows the over-run.
            let stall = self.draining.get(key).map_or(rest, |since| {
                let late = now.saturating_sub(*since).as_secs_f64();
                f64::max(STALL.as_secs_f64() - late, (account.overrun - late) / ceiling)
            });
            (!self.may_begin(now, *key)).then(|| Duration::from_secs_f64(rest.min(stall).max(0.0)).max(SOONEST))
        });
        ends.min()
    }

    /// How long the holder may go on before the next look, as far as its ceiling goes: zero when its turn is over, `None`
    /// when it has no ceiling.
    fn ceiling_left(&self, holder: Key, demands: &BTreeMap<Key, Demand>) -> Option<Duration> {
        let (demand, account) = (demands.get(&holder)?, self.accounts.get(&holder)?);
        let ceiling = demand.ceiling()?;
        // Before a closed door the next work rings: nobody has to look until then.
        if account.rests || (demand.is_idle() && demand.idle >= MOST_ANTICIPATION) {
            return Some(Duration::ZERO);
        }
        let left = (account.bound - account.overrun) / (1.0 - ceiling);
        Some(Duration::from_secs_f64(left.max(0.0)).clamp(SOONEST, ANTICIPATION.mul_f64(0.5 + account.beat)))
    }

    /// How long the holder may go on before the next look, or zero when its turn is over.
    fn turn_left(&self, holder: Key, rival: Key, demands: &BTreeMap<Key, Demand>) -> Duration {
        let Some(demand) = demands.get(&holder) else { return Duration::ZERO };
        let lead = self.time_of(holder) - self.time_of(rival);
        let left = (self.most_lead(demands) - lead) * demand.weight();
        let patience = Duration::from_secs_f64(left.max(0.0) * PATIENCE).clamp(ANTICIPATION, MOST_ANTICIPATION);
        if left <= 0.0 || (demand.is_idle() && demand.idle >= patience) {
            return Duration::ZERO;
        }
        let pause = if demand.is_idle() { patience - demand.idle } else { ANTICIPATION };
        Duration::from_secs_f64(left).clamp(SOONEST, pause.max(SOONEST))
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
    fn charge(&mut self, passed: Duration, demands: &BTreeMap<Key, Demand>) {
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
                let ceiling = demands.get(key).and_then(Demand::ceiling).unwrap_or(1.0);
                account.promised += passed.mul_f64(f64::min(weight(key) / total, ceiling));
            }
        }
    }

    /// Counts what leases with a ceiling have over-run it by since the last look.
    fn meter(&mut self, now: Duration, passed: Duration, demands: &BTreeMap<Key, Demand>) {
        for (key, demand) in demands {
            let Some(ceiling) = demand.ceiling() else { continue };
            let (open, runs) = (self.open == Some(*key), demand.running > 0);
            let others = self.accounts.iter().filter(|(other, _)| *other != key).map(|(_, account)| account);
            let floor = least_time(others);
            let account = self.accounts.entry(*key).or_default();
            let used = match (open, account.ran) {
                // Work may have begun and ended between the two looks.
                (true, ran) => passed.as_secs_f64() * (f64::from(u8::from(ran)) + f64::from(u8::from(runs))) / 2.0,
                (false, true) if runs => passed.as_secs_f64(),
                (false, true) => passed.saturating_sub(demand.idle).as_secs_f64(),
                (false, false) => 0.0,
            };
            // What others kept it from it may catch up, as long as it does not go away.  A pause saves nothing up.
            let least = if account.waited && demand.waiting > 0 && !open && !account.rests {
                -MOST_DEBT.as_secs_f64()
            } else if !demand.is_idle() || demand.idle < ABSENCE {
                account.overrun.min(0.0)
            } else {
                0.0
            };
            (account.ran, account.waited) = (runs, demand.waiting > 0);
            account.beat = (account.beat + UNEVEN).fract();
            account.overrun = (account.overrun + used - ceiling * passed.as_secs_f64()).max(least);
            let rests = account.overrun > if account.rests { 0.0 } else { account.bound };
            if rests != account.rests {
                // Who has had all that it may have is owed nothing, and little for a long rest.
                let credit = if rests { 0.0 } else { MOST_DEBT.as_secs_f64() / demand.weight() };
                account.virtual_time = floor.map_or(account.virtual_time, |at| account.virtual_time.max(at - credit));
                account.rests = rests;
            }
            if runs && !open {
                self.draining.entry(*key).or_insert(now);
            }
        }
    }

    /// A lease that comes back to the competition neither saves up what it did not use nor pays for long ago.
    fn wake(&mut self, demands: &BTreeMap<Key, Demand>) {
        let floor = least_time(self.accounts.values());
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

/// The virtual time of the one that is furthest behind, of those that compete; of those that rest only if all do.
fn least_time<'a>(accounts: impl Iterator<Item = &'a Account>) -> Option<f64> {
    let active = accounts.filter(|account| account.active);
    let order = |a: &&Account, b: &&Account| a.rests.cmp(&b.rests).then(a.virtual_time.total_cmp(&b.virtual_time));
    active.min_by(order).map(|account| account.virtual_time)
}

fn shorter(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    [a, b].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICROSECOND: Duration = Duration::from_micros(1);

    /// A program that issues `depth` kernels ahead and needs a moment between an answer and the next issue.
    #[derive(Clone, Copy)]
    struct Program {
        milli: u32,
        ceiling_milli: Option<u32>,
        kernel: Duration,
        gap: Duration,
        /// Idle for so long after every hundred kernels.
        rest: Duration,
        depth: u32,
    }

    const fn busy(milli: u32, kernel_us: u64) -> Program {
        let (gap, rest) = (Duration::ZERO, Duration::ZERO);
        Program { milli, ceiling_milli: None, kernel: Duration::from_micros(kernel_us), gap, rest, depth: 8 }
    }

    /// The same, with a ceiling at its share.
    const fn capped(milli: u32, kernel_us: u64) -> Program {
        Program { ceiling_milli: Some(milli), ..busy(milli, kernel_us) }
    }

    fn busy_demand(milli: u32, running: u32, waiting: u32) -> Demand {
        Demand { milli, ceiling_milli: None, running, waiting, idle: Duration::ZERO }
    }

    #[derive(Clone, Copy, Default)]
    struct Run {
        ends: Option<Duration>,
        queued: u32,
        issue_at: Option<Duration>,
        idle_since: Duration,
        /// Waits before a closed door.
        waits: bool,
        done: u32,
    }

    /// Kernels that each program finished in `time`, on a device that works for every lease whose work runs, each at
    /// full speed (as the arbiter lets one at a time, that is no more than the device can do).  The rules are asked when
    /// they want it, and when a worker would ring.
    fn simulate(programs: &[Program], time: Duration, arbitrated: bool) -> (Vec<u32>, Turns) {
        let (done, turns, _) = simulate_looks(programs, time, arbitrated);
        (done, turns)
    }

    /// The same, and how often the rules were asked.
    fn simulate_looks(programs: &[Program], time: Duration, arbitrated: bool) -> (Vec<u32>, Turns, u32) {
        let mut turns = Turns::default();
        let mut runs = vec![Run::default(); programs.len()];
        for (run, program) in runs.iter_mut().zip(programs) {
            run.queued = program.depth;
        }
        // The clock has run for long when the first of them comes.
        let start = Duration::from_secs(1000);
        let (mut now, mut look, mut looks) = (start, Some(start), 0);
        let (mut open, mut contended) = (None, false);
        while now < start + time {
            loop {
                let mut rung = false;
                for (index, (run, program)) in runs.iter_mut().zip(programs).enumerate() {
                    let is_open = !arbitrated || open == Some(index as Key);
                    if run.ends.is_some_and(|ends| ends <= now) {
                        run.ends = None;
                        run.done += 1;
                        run.idle_since = now;
                        let rest = if run.done % 100 == 0 { program.rest } else { Duration::ZERO };
                        run.issue_at = Some(now + program.gap + rest);
                        rung |= !is_open && (contended || program.ceiling_milli.is_some());
                    }
                    if run.issue_at.is_some_and(|at| at <= now) {
                        run.issue_at = None;
                        run.queued += 1;
                    }
                    if run.ends.is_none() && run.queued > 0 && is_open {
                        run.queued -= 1;
                        run.ends = Some(now + program.kernel);
                    }
                    let waits = run.ends.is_none() && run.queued > 0;
                    rung |= waits && !run.waits;
                    run.waits = waits;
                }
                if !arbitrated || !(rung || look.is_some_and(|look| look <= now)) {
                    break;
                }
                let demands = runs.iter().zip(programs).enumerate().map(|(index, (run, program))| {
                    let (running, waiting) = (u32::from(run.ends.is_some()), u32::from(run.waits));
                    let (milli, ceiling_milli) = (program.milli, program.ceiling_milli);
                    let idle = now.saturating_sub(run.idle_since);
                    (index as Key, Demand { milli, ceiling_milli, running, waiting, idle })
                });
                let verdict = turns.decide(now, &demands.collect());
                looks += 1;
                look = verdict.again.map(|again| now + again);
                (open, contended) = (verdict.open, verdict.contended);
            }
            now += MICROSECOND * 20;
        }
        (runs.iter().map(|run| run.done).collect(), turns, looks)
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
                (key as Key, busy_demand(*milli, 1 - waiting, waiting))
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
        let idle = Duration::from_secs(9);
        let demand = |waiting| Demand { idle, ..busy_demand(500, 0, waiting) };
        let now = Duration::from_secs(10);
        turns.decide(now, &BTreeMap::from([(0, demand(1)), (1, demand(0)), (2, demand(1))]));
        let fresh = turns.account(2).virtual_time;
        assert!(fresh >= ahead - 2.0 * QUANTUM.as_secs_f64(), "{fresh} behind {ahead}");
    }

    #[test]
    fn work_that_does_not_end_lets_the_next_in_beside_it() {
        let mut turns = Turns::default();
        let demand = |running, waiting| busy_demand(500, running, waiting);
        let at = Duration::from_millis;
        assert_eq!(turns.decide(at(0), &BTreeMap::from([(0, demand(0, 1)), (1, demand(0, 0))])).open, Some(0));
        let both = BTreeMap::from([(0, demand(1, 0)), (1, demand(0, 1))]);
        assert_eq!(turns.decide(at(1), &both).open, Some(0));
        assert_eq!(turns.decide(at(100), &both), Verdict { open: None, contended: true, again: Some(Duration::ZERO) });
        assert_eq!(turns.decide(at(100), &both).again, Some(STALL));
        assert_eq!(turns.decide(at(2_200), &both).open, Some(1), "what it waits for may be the other's work");
    }

    #[test]
    fn work_that_ran_past_its_turn_is_charged_once_when_the_turn_comes_again() {
        let mut turns = Turns::default();
        let mut look = |ms, wants: &[[u32; 2]]| {
            let demands = wants.iter().map(|[running, waiting]| busy_demand(500, *running, *waiting));
            let open = turns.decide(Duration::from_millis(ms), &(0..).zip(demands).collect()).open;
            (open, turns.draining.keys().copied().collect::<Vec<_>>())
        };
        assert_eq!(look(0, &[[0, 1], [0, 0]]), (Some(0), vec![]));
        assert_eq!(look(10, &[[1, 0], [0, 1]]), (Some(0), vec![]));
        assert_eq!(look(500, &[[1, 0], [0, 1]]), (None, vec![0]));
        assert_eq!(look(3_000, &[[1, 0], [0, 1]]), (Some(1), vec![0]), "let in beside what does not end");
        assert_eq!(look(6_000, &[[1, 1]]), (Some(0), vec![]), "the other has gone");
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

    /// The part of the device's time that each program had.
    fn parts(programs: &[Program], time: Duration) -> Vec<f64> {
        let (done, _) = simulate(programs, time, true);
        let part = |(done, program): (&u32, &Program)| program.kernel.as_secs_f64() * f64::from(*done);
        done.iter().zip(programs).map(|of| part(of) / time.as_secs_f64()).collect()
    }

    #[track_caller]
    fn assert_parts(programs: &[Program], expected: &[f64]) {
        let got = parts(programs, Duration::from_secs(10));
        for (part, expected) in got.iter().zip(expected) {
            assert!((part - expected).abs() <= 0.02, "{got:.3?} instead of {expected:.3?}");
        }
    }

    #[test]
    fn a_lease_that_is_alone_gets_its_ceiling_and_no_more() {
        for milli in [50, 100, 250, 500, 750, 950] {
            assert_parts(&[capped(milli, 1_000)], &[f64::from(milli) / 1000.0]);
        }
        assert_parts(&[Program { ceiling_milli: Some(600), ..busy(200, 1_000) }], &[0.6]);
        assert_parts(&[Program { ceiling_milli: Some(1000), ..busy(200, 1_000) }], &[1.0]);
    }

    #[test]
    fn a_ceiling_holds_for_short_kernels_and_for_long_ones() {
        assert_parts(&[capped(500, 60)], &[0.5]);
        assert_parts(&[capped(500, 200_000)], &[0.5]);
        assert_parts(&[capped(300, 200_000)], &[0.3]);
    }

    #[test]
    fn a_ceiling_counts_what_runs_and_not_what_pauses() {
        let waits = |gap, kernel, milli| Program { gap: Duration::from_micros(gap), depth: 1, ..capped(milli, kernel) };
        assert_parts(&[waits(400, 600, 400)], &[0.4]);
        assert_parts(&[waits(1_500, 620, 200)], &[0.2]);
        assert_parts(&[waits(700, 300, 500)], &[0.3]);
        assert_parts(&[waits(30_000, 30_000, 500)], &[0.5]);
    }

    #[test]
    fn a_pause_saves_up_no_more_than_a_quantum() {
        // Kernels for 100 ms, then a second without any.
        let rests = Program { rest: Duration::from_secs(1), depth: 1, ..capped(500, 1_000) };
        let longest = |part: f64| 0.1 / (1.0 + (0.1 - QUANTUM.as_secs_f64()) / part);
        let got = parts(&[rests], Duration::from_secs(20))[0];
        assert!(got <= longest(0.5) + 0.02, "{got:.3}");
    }

    #[test]
    fn beside_a_busy_neighbour_a_ceiling_takes_nothing_from_either() {
        assert_parts(&[capped(300, 1_000), busy(700, 1_000)], &[0.3, 0.7]);
        assert_parts(&[capped(300, 1_000), busy(700, 200_000)], &[0.3, 0.7]);
        assert_parts(&[capped(100, 200_000), busy(900, 60)], &[0.1, 0.9]);
    }

    #[test]
    fn what_a_ceiling_leaves_goes_to_the_others() {
        assert_parts(&[capped(200, 1_000), busy(200, 1_000)], &[0.2, 0.8]);
        assert_parts(&[capped(200, 1_000), busy(200, 1_000), busy(200, 1_000)], &[0.2, 0.4, 0.4]);
        assert_parts(&[Program { ceiling_milli: Some(400), ..busy(200, 500) }, busy(200, 500)], &[0.4, 0.6]);
    }

    #[test]
    fn two_ceilings_leave_the_rest_of_the_device_idle() {
        assert_parts(&[capped(250, 1_000); 2], &[0.25; 2]);
        assert_parts(&[capped(250, 200_000), capped(250, 60)], &[0.25; 2]);
    }

    #[test]
    fn beside_an_idle_neighbour_a_ceiling_holds() {
        let rests = Program { rest: Duration::from_secs(60), depth: 1, ..busy(500, 100) };
        assert_parts(&[capped(400, 1_000), rests], &[0.4, 0.001]);
        let rests = Program { ceiling_milli: Some(500), ..rests };
        assert_parts(&[busy(500, 1_000), rests], &[1.0, 0.001]);
    }

    #[test]
    fn only_a_ceiling_and_only_while_it_works_has_to_be_looked_at() {
        let looks = |program| simulate_looks(&[program], Duration::from_secs(10), true).2;
        assert!(looks(busy(500, 1_000)) <= 2, "{}", looks(busy(500, 1_000)));
        assert!(looks(Program { ceiling_milli: Some(1000), ..busy(500, 1_000) }) <= 2);
        let rests = Program { rest: Duration::from_secs(60), depth: 1, ..capped(500, 100) };
        assert!(looks(rests) < 100, "{} looks at 10 ms of work", looks(rests));
        assert!(looks(capped(500, 1_000)) < 6_000, "{}", looks(capped(500, 1_000)));
    }

    #[test]
    fn what_a_ceiling_keeps_from_a_lease_is_not_owed_to_it() {
        let (_, turns) = simulate(&[capped(250, 1_000), busy(250, 1_000)], Duration::from_secs(10), true);
        let behind = turns.account(1).virtual_time - turns.account(0).virtual_time;
        assert!(behind.abs() < 1.0, "{behind} behind after 10 s");
    }

    #[test]
    fn what_a_ceiling_allows_is_all_that_is_promised() {
        let (_, turns) = simulate(&[capped(300, 1_000), busy(300, 1_000)], Duration::from_secs(10), true);
        let (small, large) = (turns.account(0), turns.account(1));
        let off = small.delivered.as_secs_f64() - small.promised.as_secs_f64();
        assert!(off.abs() < 0.3 && (2.5..3.2).contains(&small.promised.as_secs_f64()), "{small:?}");
        assert!(large.delivered >= large.promised && large.promised > Duration::from_secs(4), "{large:?}");
        let (_, turns) = simulate(&[capped(300, 1_000)], Duration::from_secs(10), true);
        assert_eq!((turns.account(0).delivered, turns.account(0).promised), Default::default(), "nobody else waits");
    }

    #[test]
    fn work_that_does_not_end_over_runs_a_ceiling_no_further_than_it_must() {
        let mut turns = Turns::default();
        let demand = |running, waiting| Demand { ceiling_milli: Some(500), ..busy_demand(500, running, waiting) };
        let mut look = |ms, running, waiting| {
            let demands = BTreeMap::from([(0, demand(running, waiting))]);
            turns.decide(Duration::from_millis(ms), &demands)
        };
        assert_eq!(look(0, 0, 1).open, Some(0));
        // A kernel begins that waits for another one, which comes before the door when it is closed.
        assert_eq!(look(30, 1, 0).open, Some(0));
        assert_eq!(look(50, 1, 0).open, None);
        let shut = look(50, 1, 1);
        assert!(shut.open.is_none() && shut.again.is_some(), "{shut:?}");
        assert_eq!(look(1_900, 1, 1).open, None);
        assert_eq!(look(2_100, 1, 1).open, Some(0), "what it waits for may be before its own door");
        assert_eq!(look(2_130, 2, 0).open, Some(0));
        assert_eq!(look(2_150, 2, 0).open, None);
        // Having run for long, the next exception takes longer.
        assert_eq!(look(10_000, 2, 1).open, Some(0));
        assert_eq!(look(10_050, 3, 0).open, None);
        assert_eq!(look(12_500, 3, 1).open, None);
        // Once it has ended, all of it is paid for.
        assert_eq!(look(12_500, 0, 1).open, None);
        assert_eq!(look(24_800, 0, 1).open, None);
        assert_eq!(look(25_001, 0, 1).open, Some(0));
    }

    #[test]
    fn long_kernels_one_behind_the_other_are_paid_for() {
        let got = parts(&[capped(250, 3_000_000)], Duration::from_secs(120))[0];
        assert!((got - 0.25).abs() <= 0.03, "{got:.3}");
    }
}
