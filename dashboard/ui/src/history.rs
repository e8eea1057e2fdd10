//! Undo and redo of what is shown. A state counts once it has stood still for a moment, so that a drag or a zoom with the
//! wheel is one step.

/// For how long a state stands still before it counts, seconds.
pub const SETTLED_S: f64 = 0.5;
/// Steps that are stored, at most.
const MOST: usize = 200;

/// Undo and redo of states of type `T`.
#[derive(Debug)]
pub struct History<T> {
    past: Vec<T>,
    current: Option<T>,
    future: Vec<T>,
    /// What is shown and not settled yet, and since when.
    moving: Option<(T, f64)>,
}

impl<T> Default for History<T> {
    fn default() -> Self {
        Self { past: Vec::new(), current: None, future: Vec::new(), moving: None }
    }
}

impl<T: PartialEq + Clone> History<T> {
    /// Takes in what is shown at `now`, seconds. Whether a state is still to settle: then look again in a moment.
    pub fn observe(&mut self, shown: T, now: f64) -> bool {
        if self.current.is_none() {
            self.current = Some(shown);
            return false;
        }
        if self.current.as_ref() == Some(&shown) {
            self.moving = None;
            return false;
        }
        match &self.moving {
            Some((known, since)) if *known == shown => {
                if now - since < SETTLED_S {
                    return true;
                }
                self.settle();
                false
            }
            _ => {
                self.moving = Some((shown, now));
                true
            }
        }
    }

    /// The state that came with loading replaces the current one: nothing to undo.
    pub fn replace(&mut self, shown: T) {
        self.current = Some(shown);
        self.moving = None;
    }

    fn settle(&mut self) {
        if let Some((shown, _)) = self.moving.take() {
            self.past.extend(self.current.replace(shown));
            self.future.clear();
            if self.past.len() > MOST {
                self.past.remove(0);
            }
        }
    }

    /// One step back: what to show.
    pub fn undo(&mut self) -> Option<T> {
        self.settle();
        let before = self.past.pop()?;
        self.future.extend(self.current.replace(before.clone()));
        Some(before)
    }

    /// One step forward again: what to show.
    pub fn redo(&mut self) -> Option<T> {
        self.settle();
        let after = self.future.pop()?;
        self.past.extend(self.current.replace(after.clone()));
        Some(after)
    }

    /// Whether there is something to undo, and to redo.
    pub fn can(&self) -> (bool, bool) {
        (!self.past.is_empty() || self.moving.is_some(), !self.future.is_empty() && self.moving.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drag_is_one_step() {
        let mut history = History::default();
        for (at, shown) in [(0.0, 0), (1.0, 1), (1.1, 2), (1.2, 3), (1.5, 3)] {
            history.observe(shown, at);
        }
        assert_eq!(history.can(), (true, false));
        assert!(!history.observe(3, 1.8), "settled");
        history.observe(4, 2.0);
        assert_eq!(history.undo(), Some(3), "what moves settles at once");
        assert_eq!(history.undo(), Some(0));
        assert_eq!((history.undo(), history.can()), (None, (false, true)));
        assert_eq!((history.redo(), history.redo(), history.redo()), (Some(3), Some(4), None));
        history.undo();
        history.observe(9, 5.0);
        history.observe(9, 6.0);
        assert_eq!(history.can(), (true, false), "a new way forgets the old one");
        assert_eq!(history.undo(), Some(3));
    }

    #[test]
    fn long_sessions_are_bounded() {
        let mut history = History::default();
        for i in 0..1000 {
            history.observe(i, f64::from(i));
            history.observe(i, f64::from(i) + SETTLED_S);
        }
        let mut n = 0;
        while history.undo().is_some() {
            n += 1;
        }
        assert_eq!(n, MOST);
    }
}
