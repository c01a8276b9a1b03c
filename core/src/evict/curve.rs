//! When entries of a class come back: learned from all that do, and turned into the worth of keeping one.
//!
//! An entry's *life* begins with each use and ends with the next. Ages are counted in calls and sorted into bands, four
//! to an octave. For every class and band there are two counters: lives that reached the band, and those that ended
//! in it. The worth of an entry of age `a` is the most hits for each call of space that keeping it promises, over all
//! ages `b > a` at which one may give it up in the end: (lives that end between `a` and `b`) ÷ (calls lived between).
//! This is the Gittins index of the life that is left; it needs no constant, and is exact for scans (no worth), for
//! loops (worth grows with age, so the newest go first) and for memoryless streams (the rate).

use core::ops::Range;

/// Classes of lives.
pub(super) const CLASSES: usize = 8;
/// Of these, so many at the front are for entries used once.
pub(super) const ONCE: usize = 3;
/// Octave of the first band that is told apart; younger lives share band 0.
const FIRST: u32 = 4;
const OCTAVES: usize = 32;
const BANDS: usize = 1 + 4 * OCTAVES;
/// Lives in a counter before old ones begin to weigh less.
const ENOUGH: u32 = 1 << 16;
/// Until so many calls have passed, old lives weigh half as much whenever the calls have doubled: while an empty pool
/// fills, nearly everything is new, and teaches little about what is new later.
const EARLY: u64 = 1 << 14;
/// The first time that this happens.
const EARLIEST: u64 = 1 << 9;
/// Lives that all classes together borrow from "any age is as likely on a log scale", that the classes of a group (used
/// once, or more often) borrow from all, and that a class borrows from its group.
const BORROWED: u64 = 8;
/// The same for a class of entries used once: a scan puts many lives into one of them at a time, and they say little more
/// than one does.
const BORROWED_ONCE: u64 = 256;
/// One, as a probability.
const ONE: u64 = 1 << 20;

/// Bands of ages, and what is known about them.
#[derive(Clone, Debug)]
pub(super) struct Curves {
    now: u64,
    ended: [[u32; BANDS]; CLASSES],
    reached: [[u32; BANDS]; CLASSES],
    begun: [Cohorts; OCTAVES],
    worth: [[u64; BANDS]; CLASSES],
    /// The class to be worked out next.
    turn: usize,
}

/// Lives that began in each of the last eight quarters of an octave's length, by class.
type Cohorts = [[u32; CLASSES]; 8];

impl Default for Curves {
    fn default() -> Self {
        let mut curves = Self {
            now: 0,
            ended: [[0; BANDS]; CLASSES],
            reached: [[0; BANDS]; CLASSES],
            begun: [[[0; CLASSES]; 8]; OCTAVES],
            worth: [[0; BANDS]; CLASSES],
            turn: 0,
        };
        (0..CLASSES).for_each(|class| curves.work_out(class));
        curves
    }
}

/// The band of an age in calls.
fn band(age: u64) -> usize {
    if age < 1 << FIRST {
        return 0;
    }
    let octave = age.ilog2();
    let quarter = (age >> (octave - 2)) & 3;
    (1 + (octave - FIRST) as usize * 4 + quarter as usize).min(BANDS - 1)
}

/// How many ages a band has.
const fn width(band: usize) -> u64 {
    if band == 0 { 1 << FIRST } else { 1 << (FIRST as usize + (band - 1) / 4 - 2) }
}

impl Curves {
    /// The number of calls so far.
    pub(super) const fn now(&self) -> u64 {
        self.now
    }

    /// A life of `class` began now.
    pub(super) fn begin(&mut self, class: u8) {
        self.begun[0][(self.now >> (FIRST - 2)) as usize % 8][class as usize] += 1;
        let reached = &mut self.reached[class as usize][0];
        *reached = reached.saturating_add(1);
    }

    /// A life of `class` ended at `age`: its entry was used again, whether it was still there or not.
    pub(super) fn end(&mut self, class: u8, age: u64) {
        let ended = &mut self.ended[class as usize][band(age)];
        *ended = ended.saturating_add(1);
    }

    /// What keeping an entry of `class` that was last used `age` calls ago is worth.
    pub(super) fn worth(&self, class: u8, age: u64) -> u64 {
        self.worth[class as usize][band(age)]
    }

    /// One call passed. A quarter of an octave's length at a time, lives move from band to band.
    pub(super) fn tick(&mut self) {
        self.now += 1;
        for octave in 0..OCTAVES {
            let bits = FIRST - 2 + octave as u32;
            if self.now & ((1 << bits) - 1) != 0 {
                break;
            }
            let quarter = (self.now >> bits) as usize;
            self.pass(octave, quarter);
        }
        if self.now.is_power_of_two() && (EARLIEST..EARLY).contains(&self.now) {
            (0..CLASSES).for_each(|class| self.fade(class, 0));
        }
        if self.now.is_multiple_of(128) {
            self.work_out(self.turn);
            self.turn = (self.turn + 1) % CLASSES;
        }
    }

    /// `quarter` of `octave` begins: those that began four to seven quarters ago reached the next band.
    fn pass(&mut self, octave: usize, quarter: usize) {
        for back in 4..8 {
            let cohort = self.begun[octave][(quarter - back.min(quarter)) % 8];
            if quarter < back {
                continue;
            }
            for (reached, n) in self.reached.iter_mut().zip(cohort) {
                reached[1 + octave * 4 + back - 4] += n;
            }
        }
        if octave + 1 < OCTAVES && quarter.is_multiple_of(2) && quarter >= 2 {
            let (a, b) = (self.begun[octave][(quarter - 1) % 8], self.begun[octave][(quarter - 2) % 8]);
            self.begun[octave + 1][(quarter / 2 - 1) % 8] = core::array::from_fn(|c| a[c] + b[c]);
        }
        self.begun[octave][quarter % 8] = [0; CLASSES];
    }

    /// Works the worth of `class` out from the counters.
    fn work_out(&mut self, class: usize) {
        // Points of the curve: calls lived and lives ended up to each band's begin, for one life.
        let mut points = [(0u64, 0u64); BANDS + 1];
        let (mut left, mut calls, mut ended) = (ONE, 0, 0);
        for band in 0..BANDS {
            let share = self.share(class, band).min(left);
            calls += (width(band) * (left - share / 2)) >> 8;
            ended += share;
            left -= share;
            points[band + 1] = (calls, ended);
        }
        // The steepest way up from each point leads to the next corner of the hull of those after it.
        let mut hull = [0usize; BANDS + 1];
        let mut corners = 1;
        hull[0] = BANDS;
        for band in (0..BANDS).rev() {
            while corners > 1 && !steeper(points[band], points[hull[corners - 1]], points[hull[corners - 2]])
            {
                corners -= 1;
            }
            let (from, to) = (points[band], points[hull[corners - 1]]);
            self.worth[class][band] = ((to.1 - from.1) << 40) / (to.0 - from.0).max(1);
            hull[corners] = band;
            corners += 1;
        }
        self.fade(class, ENOUGH);
    }

    /// Halves the weight of what is known about `class` at ages that more than `enough` lives reached.
    fn fade(&mut self, class: usize, enough: u32) {
        for (reached, ended) in self.reached[class].iter_mut().zip(&mut self.ended[class]) {
            if *reached > enough {
                *reached /= 2;
                *ended /= 2;
            }
        }
    }

    /// The share of the lives of `class` that end in `band`.
    fn share(&self, class: usize, band: usize) -> u64 {
        let (group, borrowed) =
            if class < ONCE { (0..ONCE, BORROWED_ONCE) } else { (ONCE..CLASSES, BORROWED) };
        let blend = |classes: Range<usize>, borrowed: u64, prior: u64| {
            let sum = |counts: &[[u32; BANDS]]| counts.iter().map(|c| u64::from(c[band])).sum::<u64>();
            let (ended, reached) = (sum(&self.ended[classes.clone()]), sum(&self.reached[classes]));
            (ended * ONE + borrowed * prior) / (reached + borrowed)
        };
        let any = blend(0..CLASSES, BORROWED, ONE / BANDS as u64);
        let group = blend(group, BORROWED, any);
        blend(class..class + 1, borrowed, group)
    }
}

/// Whether the way from `a` to `b` rises more steeply than that from `b` to `c`.
fn steeper(a: (u64, u64), b: (u64, u64), c: (u64, u64)) -> bool {
    let rise = |from: (u64, u64), to: (u64, u64)| (u128::from(to.1 - from.1), u128::from(to.0 - from.0));
    let ((h1, t1), (h2, t2)) = (rise(a, b), rise(b, c));
    h1 * t2 > h2 * t1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lives of `class`, one begun every `every` calls, each of which ends after `ages` calls, if at all.
    fn live(curves: &mut Curves, class: u8, calls: u64, every: u64, age: Option<u64>) {
        for call in 0..calls {
            curves.tick();
            if call % every == 0 {
                curves.begin(class);
            }
            if let Some(age) = age.filter(|age| call >= *age && (call - age).is_multiple_of(every)) {
                curves.end(class, age);
            }
        }
    }

    #[test]
    fn bands_follow_one_another_and_cover_all_ages() {
        let mut begin = 0;
        for b in 0..BANDS - 1 {
            assert_eq!(band(begin), b);
            assert_eq!(band(begin + width(b) - 1), b);
            begin += width(b);
        }
        assert_eq!(band(begin), BANDS - 1);
        assert_eq!(band(u64::MAX), BANDS - 1);
    }

    #[test]
    fn lives_reach_the_bands_of_their_age() {
        let mut curves = Curves::default();
        live(&mut curves, 3, 1, 1, None);
        live(&mut curves, 4, 399, 2_000, None);
        let reached = |age| (curves.reached[3][band(age)], curves.reached[4][band(age)]);
        assert_eq!(reached(0), (1, 1));
        assert_eq!(reached(200), (1, 1));
        assert_eq!(reached(1_000), (0, 0));
    }

    #[test]
    fn in_a_loop_worth_grows_with_age_and_a_scan_has_next_to_none() {
        let mut curves = Curves::default();
        live(&mut curves, 3, 20_000, 1, Some(1_000));
        live(&mut curves, 0, 20_000, 1, None);
        (0..CLASSES).for_each(|class| curves.work_out(class));
        assert!(curves.worth(3, 900) > 2 * curves.worth(3, 500));
        assert!(curves.worth(3, 500) > curves.worth(3, 10));
        assert!((0..1_000).all(|age| curves.worth(0, age) * 10 < curves.worth(3, age)));
    }

    #[test]
    fn a_class_without_lives_is_taken_for_its_group() {
        let mut curves = Curves::default();
        live(&mut curves, 0, 20_000, 1, None);
        live(&mut curves, 3, 20_000, 1, Some(100));
        (0..CLASSES).for_each(|class| curves.work_out(class));
        assert!(curves.worth(7, 80) > 10 * curves.worth(1, 80));
    }

    #[test]
    fn early_lives_weigh_less_and_no_counter_overflows() {
        let mut curves = Curves::default();
        (0..EARLIEST - 1).for_each(|_| curves.tick());
        curves.reached[2][0] = 100;
        curves.tick();
        assert_eq!(curves.reached[2][0], 50);
        (0..EARLY).for_each(|_| curves.tick());
        assert_eq!(curves.reached[2][0], 3, "halved at 1024, 2048, 4096 and 8192, and not at 16384");
        curves.reached[2][0] = u32::MAX;
        curves.begin(2);
        curves.work_out(2);
        assert!(curves.reached[2][0] < u32::MAX);
    }
}
