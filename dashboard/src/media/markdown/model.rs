//! What a text consists of.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::{ops::Range, sync::Arc};

/// Lists and quotes within each other; what lies deeper is shown as if it lay here.
const MAX_DEPTH: usize = 12;

/// How a part of a line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanStyle {
    /// `**so**`
    pub is_bold: bool,
    /// `*so*`
    pub is_italic: bool,
    /// `~~so~~`
    pub is_struck: bool,
    /// `` `so` ``
    pub is_code: bool,
}

/// A part of a line that looks the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Bytes of the line's text.
    pub range: Range<usize>,
    /// How it looks.
    pub look: SpanStyle,
    /// Where it leads.
    pub link: Option<Arc<str>>,
}

/// Words that flow, wrapped as there is room.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// All of its words.
    pub text: String,
    /// The parts, which together are all of the text.
    pub spans: Vec<Span>,
}

impl Line {
    fn push(&mut self, text: &str, look: SpanStyle, link: Option<&Arc<str>>) {
        let from = self.text.len();
        self.text.push_str(text);
        match self.spans.last_mut() {
            Some(last) if last.look == look && last.link.as_ref() == link => last.range.end = self.text.len(),
            _ if text.is_empty() => {}
            _ => self.spans.push(Span { range: from..self.text.len(), look, link: link.cloned() }),
        }
    }
}

/// A part of a text that stands alone.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A heading of a level, 0 is the largest of six.
    Heading(usize, Line),
    /// A paragraph.
    Paragraph(Line),
    /// Code, letter by letter.
    Code(String),
    /// What is quoted.
    Quote(Vec<Block>),
    /// A list, numbered from the number on if there is one.
    List(Option<u64>, Vec<Vec<Block>>),
    /// Rows of cells, the headings first.
    Table(Vec<Vec<Line>>),
    /// A line across.
    Rule,
}

/// The parts of a text, CommonMark with the tables and struck-out words of GitHub.
pub fn parse(text: &str) -> Vec<Block> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut builder = Builder::default();
    for event in Parser::new_ext(text, options) {
        builder.take(event);
    }
    builder.finish()
}

/// A list or quote that is not at its end yet.
enum Open {
    Quote(Vec<Block>),
    List(Option<u64>, Vec<Vec<Block>>),
    Item(Vec<Block>),
}

#[derive(Default)]
struct Builder {
    done: Vec<Block>,
    open: Vec<Open>,
    /// Lists and quotes that are too deep to be opened.
    n_flat: usize,
    line: Line,
    look: SpanStyle,
    link: Option<Arc<str>>,
    code: Option<String>,
    table: Option<Vec<Vec<Line>>>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text),
            // What HTML would do is not done: it is shown as it was written.
            Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::Code(text) => self.line.push(&text, SpanStyle { is_code: true, ..self.look }, self.link.as_ref()),
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.text("\n"),
            Event::Rule => self.put(Block::Rule),
            Event::TaskListMarker(is_done) => self.text(if is_done { "[x] " } else { "[ ] " }),
            Event::FootnoteReference(name) => self.text(&format!("[{name}]")),
        }
    }

    fn text(&mut self, text: &str) {
        match &mut self.code {
            Some(code) => code.push_str(text),
            None => self.line.push(text, self.look, self.link.as_ref()),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Emphasis => self.look.is_italic = true,
            Tag::Strong => self.look.is_bold = true,
            Tag::Strikethrough => self.look.is_struck = true,
            Tag::Link { dest_url, .. } => self.link = Some(dest_url.as_ref().into()),
            Tag::CodeBlock(kind) => {
                self.end_line();
                // What follows the fence says which language it is, which changes nothing here.
                let (CodeBlockKind::Fenced(_) | CodeBlockKind::Indented) = kind;
                self.code = Some(String::new());
            }
            Tag::Table(_) => {
                self.end_line();
                self.table = Some(Vec::new());
            }
            Tag::TableHead | Tag::TableRow => self.table.iter_mut().for_each(|rows| rows.push(Vec::new())),
            Tag::BlockQuote(_) => self.begin(Open::Quote(Vec::new())),
            Tag::List(from) => self.begin(Open::List(from, Vec::new())),
            Tag::Item => self.begin(Open::Item(Vec::new())),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Emphasis => self.look.is_italic = false,
            TagEnd::Strong => self.look.is_bold = false,
            TagEnd::Strikethrough => self.look.is_struck = false,
            TagEnd::Link => self.link = None,
            TagEnd::Heading(level) => {
                let line = std::mem::take(&mut self.line);
                self.put(Block::Heading(level as usize - 1, line));
            }
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_line(),
            TagEnd::CodeBlock => {
                if let Some(mut code) = self.code.take() {
                    code.truncate(code.trim_end_matches('\n').len());
                    self.put(Block::Code(code));
                }
            }
            TagEnd::TableCell => {
                let line = std::mem::take(&mut self.line);
                self.table.iter_mut().filter_map(|rows| rows.last_mut()).for_each(|row| row.push(line.clone()));
            }
            TagEnd::Table => {
                if let Some(rows) = self.table.take() {
                    self.put(Block::Table(rows));
                }
            }
            TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item => self.close(),
            _ => {}
        }
    }

    /// Words that stand in no paragraph of their own, as those of a list do.
    fn end_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        line.text.truncate(line.text.trim_end().len());
        line.spans.retain_mut(|span| {
            span.range.end = span.range.end.min(line.text.len());
            !span.range.is_empty()
        });
        if !line.text.is_empty() {
            self.put(Block::Paragraph(line));
        }
    }

    fn begin(&mut self, open: Open) {
        self.end_line();
        // Items of a list that is not opened are none either.
        if self.n_flat > 0 || self.open.len() >= MAX_DEPTH && !matches!(open, Open::Item(_)) {
            self.n_flat += 1;
        } else {
            self.open.push(open);
        }
    }

    fn close(&mut self) {
        self.end_line();
        if self.n_flat > 0 {
            self.n_flat -= 1;
            return;
        }
        match self.open.pop() {
            Some(Open::Quote(blocks)) => self.put(Block::Quote(blocks)),
            Some(Open::List(from, items)) => self.put(Block::List(from, items)),
            Some(Open::Item(blocks)) => {
                if let Some(Open::List(_, items)) = self.open.last_mut() {
                    items.push(blocks);
                }
            }
            None => {}
        }
    }

    fn put(&mut self, block: Block) {
        match self.open.last_mut() {
            Some(Open::Quote(blocks) | Open::Item(blocks)) => blocks.push(block),
            Some(Open::List(_, items)) => items.push(vec![block]),
            None => self.done.push(block),
        }
    }

    fn finish(mut self) -> Vec<Block> {
        self.end_line();
        while !self.open.is_empty() {
            self.close();
        }
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A text's parts as a short text.
    fn check(text: &str) -> String {
        parse(text).iter().map(told).collect::<Vec<_>>().join(" ")
    }

    fn told(block: &Block) -> String {
        let all = |blocks: &[Block]| blocks.iter().map(told).collect::<Vec<_>>().join(" ");
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
            let SpanStyle { is_bold, is_italic, is_struck, is_code } = span.look;
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
