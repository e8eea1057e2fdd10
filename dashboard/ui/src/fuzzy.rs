//! Fuzzy search as in editors: the letters of the query occur in order; the positions with the best score count.

/// The score of `text` for `query`, greater is better; `None` where the letters do not occur in order. Spaces in the
/// query and case are ignored. Letters at the start of words and next to each other count more, and short texts score
/// better than long ones.
pub fn score(query: &str, text: &str) -> Option<i32> {
    let query_letters: Vec<char> = query.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect();
    if query_letters.is_empty() {
        return Some(0);
    }
    let letters: Vec<char> = text.chars().take(MAX_LEN).collect();
    // best[j] is the best score of the query's letters so far with the last of them at j.
    let mut best: Vec<Option<i32>> = Vec::new();
    for (i, letter) in query_letters.iter().enumerate() {
        let mut next = vec![None; letters.len()];
        let mut best_before: Option<i32> = None;
        for (j, c) in letters.iter().enumerate() {
            if c.to_lowercase().next() == Some(*letter) {
                let start = if i == 0 { Some(0) } else { best_before };
                let run = j.checked_sub(1).and_then(|before| *best.get(before)?).map(|s| s + RUN_BONUS);
                let from = if i == 0 { start } else { start.max(run) };
                next[j] = from.map(|s| s + 1 + position_bonus(&letters, j));
            }
            best_before = best_before.max(best.get(j).copied().flatten());
        }
        best = next;
    }
    let score = best.into_iter().flatten().max()?;
    Some(score * 16 - letters.len().min(15 * 16) as i32 / 16)
}

/// Letters of a text that are compared, at most.
const MAX_LEN: usize = 256;
/// Bonus of a letter right after the previous one.
const RUN_BONUS: i32 = 8;
/// Bonus of a letter at the start of a word.
const WORD_BONUS: i32 = 6;
/// Additional bonus of the first letter of the text.
const FIRST_BONUS: i32 = 2;

/// The bonus for a match of the letter at `j`.
fn position_bonus(letters: &[char], j: usize) -> i32 {
    let Some(before) = j.checked_sub(1).map(|i| letters[i]) else { return WORD_BONUS + FIRST_BONUS };
    let is_word_start = !before.is_alphanumeric() || (before.is_lowercase() && letters[j].is_uppercase());
    if is_word_start { WORD_BONUS } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts that fit, best first.
    fn check(query: &str, texts: &[&'static str]) -> Vec<&'static str> {
        let mut found: Vec<_> = texts.iter().filter_map(|t| Some((score(query, t)?, *t))).collect();
        found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        found.into_iter().map(|(_, t)| t).collect()
    }

    #[test]
    fn begins_of_words_and_runs_win() {
        assert_eq!(check("swt", &["sweet", "Show the whole trace", "towers"]), ["Show the whole trace", "sweet"]);
        assert_eq!(
            check("save csv", &["Save as vectors (SVG)", "Save all as a table (CSV)"])[0],
            "Save all as a table (CSV)"
        );
        assert_eq!(check("mm", &["commit", "layer1/MatMul"]), ["layer1/MatMul", "commit"]);
        assert_eq!(check("save png", &["Save as picture (PNG)", "Save as vectors (SVG)"]), ["Save as picture (PNG)"]);
        assert_eq!(check("loss", &["train/loss", "l/o/s/s/y", "loss"])[0], "loss");
        assert_eq!(check("", &["b", "a"]), ["b", "a"], "everything, in order");
        assert_eq!(score("x", "abc"), None);
        assert_eq!(score("abc", "cba"), None);
        assert!(score("ÄX", "äx").is_some());
    }
}
