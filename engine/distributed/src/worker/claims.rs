//! Which masters may use the task. One that drops variables to make its own takes the task for itself; one that was there before, and
//! was stopped or cut off meanwhile, must not touch them when it comes back: not even with what it prepares only then.

use std::collections::VecDeque;

/// Masters that are remembered after they went.
const MAX_KNOWN: usize = 1024;

/// Who came, in that order, and who took the task.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// Masters with the number of their coming. They keep it when they come again.
    known: VecDeque<(u64, u64)>,
    next: u64,
    owner: Option<Owner>,
}

#[derive(Debug)]
struct Owner {
    master: u64,
    /// Who has a smaller number came before it.
    since: u64,
}

impl Claims {
    /// A master is there.
    pub fn add(&mut self, master: u64) {
        if self.number(master).is_some() {
            return;
        }
        if self.known.len() == MAX_KNOWN {
            self.known.pop_front();
        }
        self.known.push_back((master, self.next));
        self.next += 1;
    }

    /// A master is gone: what it took is free.
    pub fn leave(&mut self, master: u64) {
        self.owner = self.owner.take().filter(|owner| owner.master != master);
    }

    /// A master takes the task. It is free again when that master leaves.
    pub fn claim(&mut self, master: u64) {
        self.owner = Some(Owner { master, since: self.next });
    }

    /// Whether a master may use the task: nobody took it, or this one did, or this one came later.
    pub fn admits(&self, master: u64) -> bool {
        let Some(owner) = &self.owner else { return true };
        owner.master == master || self.number(master).is_some_and(|number| number >= owner.since)
    }

    fn number(&self, master: u64) -> Option<u64> {
        self.known.iter().find(|(known, _)| *known == master).map(|(_, number)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_came_before_an_owner_waits_for_its_end() {
        let mut claims = Claims::default();
        claims.add(7);
        claims.add(8);
        assert!(claims.admits(7) && claims.admits(8));
        claims.claim(8);
        claims.add(9);
        assert!(!claims.admits(7) && claims.admits(8) && claims.admits(9));
        // Coming again does not help, taking it back does.
        claims.leave(7);
        claims.add(7);
        assert!(!claims.admits(7));
        claims.claim(7);
        assert!(claims.admits(7) && !claims.admits(8) && !claims.admits(9));
        claims.leave(7);
        assert!(claims.admits(8) && claims.admits(9));
    }

    #[test]
    fn no_more_are_remembered_than_that() {
        let mut claims = Claims::default();
        (0..3 * MAX_KNOWN as u64).for_each(|master| claims.add(master));
        assert_eq!(claims.known.len(), MAX_KNOWN);
    }
}
