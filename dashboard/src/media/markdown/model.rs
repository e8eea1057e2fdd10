//! A Markdown text as a tree of blocks.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::{mem::take, ops::Range, sync::Arc};

/// Nesting of lists and quotes, at most; deeper blocks are shown at this level.
const MAX_DEPTH: usize = 12;

/// The style of a part of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanStyle {
    pub is_bold: bool,
    pub is_italic: bool,
    pub is_struck: bool,
    pub is_code: bool,
}

/// A part of a line with one style.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Range of the part in the line's text, bytes.
    pub range: Range<usize>,
    pub style: SpanStyle,
    /// The address, if the part is a link.
    pub link: Option<Arc<str>>,
}

/// A paragraph, wrapped to the width.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// The text without markup.
    pub text: String,
    /// The parts, in order, without gaps.
    pub spans: Vec<Span>,
}

/// A block of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A heading with its level, 0 for the largest of six.
    Heading(usize, Line),
    Paragraph(Line),
    /// Preformatted code.
    Code(String),
    Quote(Vec<Block>),
    /// A list with the number of its first item, if it is numbered.
    List(Option<u64>, Vec<Vec<Block>>),
    /// Rows of cells; the first row has the headings.
    Table(Vec<Vec<Line>>),
    /// A horizontal line.
    Rule,
}

/// Parses CommonMark with GitHub's tables and struck-out text.
pub fn parse(text: &str) -> Vec<Block> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    blocks(&mut Parser::new_ext(text, options), 0)
}

/// The blocks up to the end of the open quote or list item.
fn blocks<'a>(events: &mut impl Iterator<Item = Event<'a>>, depth: usize) -> Vec<Block> {
    let (mut out, mut words, mut n_flat) = (Vec::new(), Words::default(), 0);
    while let Some(event) = events.next() {
        match event {
            Event::Start(Tag::BlockQuote(_) | Tag::List(_) | Tag::Item) if depth >= MAX_DEPTH => {
                out.extend(words.paragraph());
                n_flat += 1;
            }
            Event::End(TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item) if n_flat > 0 => {
                out.extend(words.paragraph());
                n_flat -= 1;
            }
            Event::End(TagEnd::BlockQuote(_) | TagEnd::Item) => break,
            Event::End(TagEnd::Heading(level)) => out.push(Block::Heading(level as usize - 1, take(&mut words.line))),
            // Text of a list item without a paragraph of its own ends where another block begins.
            Event::Start(tag @ (Tag::BlockQuote(_) | Tag::List(_) | Tag::CodeBlock(_) | Tag::Table(_))) => {
                out.extend(words.paragraph());
                out.push(match tag {
                    Tag::List(from) => Block::List(from, items(events, depth + 2)),
                    // The language after the fence is ignored, as code is not highlighted.
                    Tag::CodeBlock(_) => Block::Code(code(events)),
                    Tag::Table(_) => Block::Table(table(events)),
                    _ => Block::Quote(blocks(events, depth + 1)),
                });
            }
            Event::End(TagEnd::Paragraph | TagEnd::HtmlBlock) => out.extend(words.paragraph()),
            Event::Rule => out.push(Block::Rule),
            event => words.push(event),
        }
    }
    out.extend(words.paragraph());
    out
}

fn items<'a>(events: &mut impl Iterator<Item = Event<'a>>, depth: usize) -> Vec<Vec<Block>> {
    let mut out = Vec::new();
    while let Some(Event::Start(_)) = events.next() {
        out.push(blocks(events, depth));
    }
    out
}

fn code<'a>(events: &mut impl Iterator<Item = Event<'a>>) -> String {
    let mut out = String::new();
    while let Some(Event::Text(text)) = events.next() {
        out.push_str(&text);
    }
    out.truncate(out.trim_end_matches('\n').len());
    out
}

fn table<'a>(events: &mut impl Iterator<Item = Event<'a>>) -> Vec<Vec<Line>> {
    let (mut rows, mut row, mut words) = (Vec::new(), Vec::new(), Words::default());
    loop {
        match events.next() {
            Some(Event::End(TagEnd::TableCell)) => row.push(take(&mut words.line)),
            Some(Event::End(TagEnd::TableHead | TagEnd::TableRow)) => rows.push(take(&mut row)),
            Some(Event::End(TagEnd::Table)) | None => return rows,
            Some(event) => words.push(event),
        }
    }
}

/// A line under construction.
#[derive(Default)]
struct Words {
    line: Line,
    style: SpanStyle,
    link: Option<Arc<str>>,
}

impl Words {
    fn push(&mut self, event: Event<'_>) {
        match event {
            // HTML is not interpreted, but shown as written.
            Event::Html(text) | Event::InlineHtml(text) | Event::Text(text) => self.text(&text, self.style),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text, self.style),
            Event::Code(text) => self.text(&text, SpanStyle { is_code: true, ..self.style }),
            Event::SoftBreak => self.text(" ", self.style),
            Event::HardBreak => self.text("\n", self.style),
            Event::TaskListMarker(is_done) => self.text(if is_done { "[x] " } else { "[ ] " }, self.style),
            Event::FootnoteReference(name) => self.text(&format!("[{name}]"), self.style),
            Event::Start(Tag::Link { dest_url, .. }) => self.link = Some(dest_url.as_ref().into()),
            Event::End(TagEnd::Link) => self.link = None,
            Event::Start(tag) => self.switch(tag.to_end(), true),
            Event::End(tag) => self.switch(tag, false),
            Event::Rule => {}
        }
    }

    fn switch(&mut self, tag: TagEnd, is_on: bool) {
        match tag {
            TagEnd::Emphasis => self.style.is_italic = is_on,
            TagEnd::Strong => self.style.is_bold = is_on,
            TagEnd::Strikethrough => self.style.is_struck = is_on,
            _ => {}
        }
    }

    fn text(&mut self, text: &str, style: SpanStyle) {
        let from = self.line.text.len();
        self.line.text.push_str(text);
        let end = self.line.text.len();
        match self.line.spans.last_mut() {
            Some(last) if last.style == style && last.link == self.link => last.range.end = end,
            _ if text.is_empty() => {}
            _ => self.line.spans.push(Span { range: from..end, style, link: self.link.clone() }),
        }
    }

    /// The line so far without blanks at its end; `None` where nothing is left.
    fn paragraph(&mut self) -> Option<Block> {
        let mut line = take(&mut self.line);
        line.text.truncate(line.text.trim_end().len());
        line.spans.retain_mut(|span| {
            span.range.end = span.range.end.min(line.text.len());
            !span.range.is_empty()
        });
        (!line.text.is_empty()).then_some(Block::Paragraph(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A text's parts as a short text.
    fn check(text: &str) -> String {
        parse(text).iter().map(short).collect::<Vec<_>>().join(" ")
    }

    fn short(block: &Block) -> String {
        let all = |blocks: &[Block]| blocks.iter().map(short).collect::<Vec<_>>().join(" ");
        match block {
            Block::Heading(level, line) => format!("h{}[{}]", level + 1, of_line(line)),
            Block::Paragraph(line) => format!("p[{}]", of_line(line)),
            Block::Code(text) => format!("code[{text}]"),
            Block::Quote(blocks) => format!("quote[{}]", all(blocks)),
            Block::List(from, items) => {
                let items: Vec<_> = items.iter().map(|item| all(item)).collect();
                format!("list{}[{}]", from.map_or_else(String::new, |n| n.to_string()), items.join(" | "))
            }
            Block::Table(rows) => {
                let row = |row: &Vec<Line>| row.iter().map(of_line).collect::<Vec<_>>().join(",");
                format!("table[{}]", rows.iter().map(row).collect::<Vec<_>>().join(" | "))
            }
            Block::Rule => "rule".to_owned(),
        }
    }

    fn of_line(line: &Line) -> String {
        let span = |span: &Span| {
            let SpanStyle { is_bold, is_italic, is_struck, is_code } = span.style;
            let marks: String = [(is_bold, 'b'), (is_italic, 'i'), (is_struck, 's'), (is_code, 'c')]
                .iter()
                .filter(|m| m.0)
                .map(|m| m.1)
                .collect();
            let link = span.link.as_ref().map_or_else(String::new, |link| format!("({link})"));
            let text = &line.text[span.range.clone()];
            if marks.is_empty() && link.is_empty() { text.to_owned() } else { format!("<{marks}{link}:{text}>") }
        };
        line.spans.iter().map(span).collect()
    }

    #[test]
    fn lines_know_how_their_parts_look() {
        assert_eq!(check("# A *b*\n\n###### c"), "h1[A <i:b>] h6[c]");
        assert_eq!(check("a **b *c*** ~~d~~ `e` f"), "p[a <b:b ><bi:c> <s:d> <c:e> f]");
        assert_eq!(check("one\ntwo  \nthree\n\nfour"), "p[one two\nthree] p[four]");
        assert_eq!(check("see [**it**](http://x/y) ![a cat](cat.png)"), "p[see <b(http://x/y):it> a cat]");
        assert_eq!(check("a <b>c</b>\n\n<script>d</script>"), "p[a <b>c</b>] p[<script>d</script>]");
    }

    #[test]
    fn lists_quotes_code_and_tables() {
        assert_eq!(check("- a\n- **b**\n  - c\n\n3. x\n4. y"), "list[p[a] | p[<b:b>] list[p[c]]] list3[p[x] | p[y]]");
        assert_eq!(check("- [x] done\n- [ ] not"), "list[p[[x] done] | p[[ ] not]]");
        assert_eq!(check("> a\n>\n> - b\n\n---\n\n```rust\nlet x;\n\n```"), "quote[p[a] list[p[b]]] rule code[let x;]");
        assert_eq!(check("|a|**b**|\n|---|---|\n|1|2|\n\nend"), "table[a,<b:b> | 1,2] p[end]");
        assert_eq!(check(""), "");
    }

    #[test]
    fn what_lies_too_deep_is_shown_all_the_same() {
        let text = format!("{}deep\n\nend", "> ".repeat(5000));
        let got = check(&text);
        assert_eq!(got.matches("quote").count(), MAX_DEPTH);
        assert!(got.contains("p[deep]") && got.ends_with(" p[end]"), "{got}");
        let list: String = (0..100).map(|i| format!("{}- {i}\n", "  ".repeat(i))).collect();
        let got = check(&list);
        assert!((0..100).all(|i| got.contains(&format!("p[{i}]"))), "{got}");
    }

    proptest! {
        #[test]
        fn any_text_has_parts_that_lie_in_their_lines(text in "[ -~\n]{0,60}|[#>*_`\\-|\\[\\]() \na1.]{0,80}") {
            fn lines(blocks: &[Block], out: &mut Vec<Line>) {
                for block in blocks {
                    match block {
                        Block::Heading(_, line) | Block::Paragraph(line) => out.push(line.clone()),
                        Block::Quote(blocks) => lines(blocks, out),
                        Block::List(_, items) => items.iter().for_each(|item| lines(item, out)),
                        Block::Table(rows) => out.extend(rows.iter().flatten().cloned()),
                        Block::Code(_) | Block::Rule => {}
                    }
                }
            }
            let mut all = Vec::new();
            lines(&parse(&text), &mut all);
            for line in all {
                let mut at = 0;
                for span in &line.spans {
                    prop_assert_eq!(span.range.start, at);
                    prop_assert!(span.range.end > at && line.text.is_char_boundary(span.range.end));
                    at = span.range.end;
                }
                prop_assert_eq!(at, line.text.len());
            }
        }
    }
}
