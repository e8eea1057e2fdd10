//! Text from a grammar whose entropy is known, so that a language model's loss has a floor to be compared with.
//!
//! Sentences agree in number over distances (`the dogs that the old cat sees run .`), and every string has one derivation,
//! so that a sentence's entropy is that of its derivation, and the entropy of a word in an endless text is the entropy
//! of a sentence over the mean length of a sentence.

use rustc_hash::FxHashMap;

use super::shuffle::SplitMix64;

/// What a rule puts in a symbol's place: words, and symbols in capitals.
type Rule = (f64, &'static str);

/// The rules, from the first symbol on; each symbol uses later ones only. Weights are relative.
const RULES: &[(&str, &[Rule])] = &[
    ("SENTENCE", &[(3.0, "SUBJECT1 VERB1 ."), (2.0, "SUBJECT2 VERB2 .")]),
    ("SUBJECT1", &[(4.0, "ONE"), (1.0, "ONE that ONE SEES1"), (1.0, "ONE that VERB1")]),
    ("SUBJECT2", &[(4.0, "MANY"), (1.0, "MANY that ONE SEES1"), (1.0, "MANY that VERB2")]),
    ("VERB1", &[(2.0, "RUNS1"), (3.0, "SEES1 THING"), (1.0, "RUNS1 HOW")]),
    ("VERB2", &[(2.0, "RUNS2"), (3.0, "SEES2 THING"), (1.0, "RUNS2 HOW")]),
    ("THING", &[(2.0, "ONE"), (1.0, "MANY")]),
    ("ONE", &[(3.0, "a NOUN1"), (3.0, "the NOUN1"), (2.0, "the KIND NOUN1"), (1.0, "this KIND NOUN1")]),
    ("MANY", &[(3.0, "the NOUN2"), (2.0, "some KIND NOUN2"), (1.0, "NUMBER NOUN2")]),
    ("KIND", &[(4.0, "old"), (3.0, "young"), (2.0, "small"), (2.0, "large"), (1.0, "quiet"), (1.0, "clever")]),
    ("NUMBER", &[(3.0, "two"), (2.0, "three"), (1.0, "four"), (1.0, "seven")]),
    (
        "NOUN1",
        &[(5.0, "dog"), (4.0, "cat"), (3.0, "child"), (2.0, "bird"), (2.0, "horse"), (1.0, "poet"), (1.0, "sailor")],
    ),
    (
        "NOUN2",
        &[
            (5.0, "dogs"),
            (4.0, "cats"),
            (3.0, "children"),
            (2.0, "birds"),
            (2.0, "horses"),
            (1.0, "poets"),
            (1.0, "sailors"),
        ],
    ),
    ("RUNS1", &[(4.0, "runs"), (3.0, "sleeps"), (2.0, "sings"), (1.0, "waits")]),
    ("RUNS2", &[(4.0, "run"), (3.0, "sleep"), (2.0, "sing"), (1.0, "wait")]),
    ("SEES1", &[(4.0, "sees"), (3.0, "likes"), (2.0, "hears"), (1.0, "follows")]),
    ("SEES2", &[(4.0, "see"), (3.0, "like"), (2.0, "hear"), (1.0, "follow")]),
    ("HOW", &[(3.0, "often"), (2.0, "here"), (1.0, "slowly"), (1.0, "alone")]),
];

/// The grammar, with its words numbered.
pub struct Grammar {
    words: Vec<&'static str>,
    rules: Vec<Vec<(f64, Vec<Part>)>>,
}

#[derive(Clone, Copy)]
enum Part {
    Symbol(usize),
    Word(i32),
}

impl Default for Grammar {
    fn default() -> Grammar {
        Grammar::new()
    }
}

impl Grammar {
    /// The grammar.
    pub fn new() -> Grammar {
        let symbols: FxHashMap<&str, usize> = RULES.iter().enumerate().map(|(i, (name, _))| (*name, i)).collect();
        let mut words: Vec<&'static str> = Vec::new();
        let mut part = |name: &'static str| {
            if let Some(symbol) = symbols.get(name) {
                return Part::Symbol(*symbol);
            }
            let known = words.iter().position(|word| *word == name);
            let number = known.unwrap_or_else(|| {
                words.push(name);
                words.len() - 1
            });
            Part::Word(number as i32)
        };
        let mut rules = Vec::new();
        for (_, choices) in RULES {
            let total: f64 = choices.iter().map(|(weight, _)| weight).sum();
            let choice = |(weight, text): &Rule| (weight / total, text.split(' ').map(&mut part).collect());
            rules.push(choices.iter().map(choice).collect());
        }
        Grammar { words, rules }
    }

    /// The words, by number.
    pub fn words(&self) -> &[&'static str] {
        &self.words
    }

    /// The entropy of one word given all before it, in an endless text, nats.
    pub fn entropy_per_word(&self) -> f64 {
        let (entropy, length) = self.entropy_and_length(0);
        entropy / length
    }

    /// Entropy in nats and mean number of words of what a symbol stands for.
    fn entropy_and_length(&self, symbol: usize) -> (f64, f64) {
        let (mut entropy, mut length) = (0.0, 0.0);
        for (p, parts) in &self.rules[symbol] {
            entropy -= p * p.ln();
            for part in parts {
                let (h, n) = match part {
                    Part::Symbol(symbol) => self.entropy_and_length(*symbol),
                    Part::Word(_) => (0.0, 1.0),
                };
                entropy += p * h;
                length += p * n;
            }
        }
        (entropy, length)
    }

    /// The kinds of words that mean alike: words that the same symbol chooses among, as numbers. A learned embedding
    /// should bring them together.
    pub fn kinds(&self) -> Vec<Vec<i32>> {
        let single = |parts: &Vec<Part>| match parts[..] {
            [Part::Word(word)] => Some(word),
            _ => None,
        };
        let kinds = self.rules.iter().map(|choices| choices.iter().filter_map(|(_, parts)| single(parts)).collect());
        kinds.filter(|kind: &Vec<i32>| kind.len() > 1).collect()
    }

    /// A text of at least `n_words` words, cut there. The same seed gives the same text.
    pub fn text(&self, n_words: usize, seed: u64) -> Vec<i32> {
        let mut rng = SplitMix64::new(seed);
        let mut text = Vec::with_capacity(n_words + 32);
        while text.len() < n_words {
            self.expand(0, &mut rng, &mut text);
        }
        text.truncate(n_words);
        text
    }

    fn expand(&self, symbol: usize, rng: &mut SplitMix64, text: &mut Vec<i32>) {
        let choices = &self.rules[symbol];
        let mut left = rng.unit();
        let chosen = choices.iter().position(|(p, _)| {
            left -= p;
            left < 0.0
        });
        // Rounding may leave a rest: it is the last one's.
        for part in &choices[chosen.unwrap_or(choices.len() - 1)].1 {
            match part {
                Part::Symbol(symbol) => self.expand(*symbol, rng, text),
                Part::Word(word) => text.push(*word),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_use_later_ones_so_that_sentences_end() {
        for (i, (_, choices)) in RULES.iter().enumerate() {
            for part in choices.iter().flat_map(|(_, text)| text.split(' ')) {
                let symbol = RULES.iter().position(|(name, _)| *name == part);
                assert!(symbol.is_none_or(|symbol| symbol > i), "{part}");
                assert!(symbol.is_some() || part.chars().all(|c| !c.is_uppercase()), "{part} is no symbol");
            }
        }
    }

    /// The optimal model of a text is the grammar itself: the mean of -ln p over the sentences that it makes.
    #[test]
    fn the_entropy_is_what_sentences_carry() {
        let grammar = Grammar::new();
        let mut rng = SplitMix64::new(5);
        let (mut nats, mut words) = (0.0, 0usize);
        fn derive(grammar: &Grammar, symbol: usize, rng: &mut SplitMix64, nats: &mut f64, words: &mut usize) {
            let choices = &grammar.rules[symbol];
            let mut left = rng.unit();
            let chosen = choices.iter().position(|(p, _)| {
                left -= p;
                left < 0.0
            });
            let (p, parts) = &choices[chosen.unwrap_or(choices.len() - 1)];
            *nats -= p.ln();
            for part in parts {
                match part {
                    Part::Symbol(symbol) => derive(grammar, *symbol, rng, nats, words),
                    Part::Word(_) => *words += 1,
                }
            }
        }
        for _ in 0..20_000 {
            derive(&grammar, 0, &mut rng, &mut nats, &mut words);
        }
        let (measured, exact) = (nats / words as f64, grammar.entropy_per_word());
        assert!((measured / exact - 1.0).abs() < 0.01, "{measured} against {exact}");
    }

    /// Strings with two derivations would make the entropy of the text less than that of its derivations.
    #[test]
    fn every_sentence_has_one_derivation() {
        let grammar = Grammar::new();
        let mut of_sentence: FxHashMap<Vec<i32>, Vec<usize>> = FxHashMap::default();
        let mut rng = SplitMix64::new(9);
        fn derive(grammar: &Grammar, symbol: usize, rng: &mut SplitMix64, made: &mut (Vec<usize>, Vec<i32>)) {
            let chosen = (rng.unit() * grammar.rules[symbol].len() as f64) as usize;
            made.0.push(chosen);
            for part in &grammar.rules[symbol][chosen].1 {
                match part {
                    Part::Symbol(symbol) => derive(grammar, *symbol, rng, made),
                    Part::Word(word) => made.1.push(*word),
                }
            }
        }
        for _ in 0..100_000 {
            let mut made = (Vec::new(), Vec::new());
            derive(&grammar, 0, &mut rng, &mut made);
            let before = of_sentence.insert(made.1.clone(), made.0.clone());
            assert!(before.is_none_or(|before| before == made.0), "{:?}", made.1);
        }
    }

    #[test]
    fn a_seed_fixes_the_text() {
        let grammar = Grammar::new();
        assert_eq!(grammar.text(50, 1), grammar.text(50, 1));
        assert_ne!(grammar.text(50, 1), grammar.text(50, 2));
        let words: Vec<&str> = grammar.text(2000, 1).iter().map(|word| grammar.words()[*word as usize]).collect();
        assert!(words.contains(&"children") && words.contains(&"."));
    }
}
