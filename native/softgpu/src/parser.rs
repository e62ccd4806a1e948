//! Module-level PTX: directives, variables, functions and the statements of their bodies.

use crate::error::PtxError;
use crate::ir::{Function, HEADER_ROWS, Slot};
use crate::lexer::{Kind, Token, tokens};
use crate::lower::{
    Builder, Formal, Variable, is_directive, is_special, is_type, lacking, target_of, unknown, version_of,
};
use crate::module::{GlobalInfo, Module, Relocation, SharedVariable, Symbol};
use crate::types::Type;
use std::collections::HashMap;

/// Most bytes that one variable may take; more is a mistake or an attack.
const MOST_BYTES: u64 = 1 << 40;
/// Most bytes that the ends of arrays add to the initial values of a module.
const MOST_PADDED: u64 = 1 << 26;
/// Most instructions that aliases repeat in all.
const MOST_OF_ALIASES: usize = 1 << 20;
/// Most `{` inside each other in a function.
const MOST_BLOCKS: usize = 256;
/// Most variables of one `name<n>`.
const MOST_MANY: u32 = 1 << 16;

/// Parses a whole module.
pub fn parse(text: &str) -> Result<Module, PtxError> {
    let tokens = tokens(text)?;
    let mut parser = Parser {
        tokens: &tokens,
        at: 0,
        module: Module::default(),
        target: 0,
        names: HashMap::new(),
        aliases: Vec::new(),
        padded: 0,
        refused: None,
    };
    parser.run()?;
    parser.follow_aliases()?;
    Ok(parser.module)
}

/// Names of the variables in device memory that stand outside of functions, of whatever version the text is.
pub fn names_of_variables(tokens: &[Token]) -> Vec<String> {
    let (mut names, mut depth) = (Vec::new(), 0usize);
    // Inside a declaration of variables: whether a name comes next.
    let mut declares: Option<bool> = None;
    for token in tokens {
        match token.kind {
            Kind::Punct(b'{' | b'[' | b'(') => depth += 1,
            Kind::Punct(b'}' | b']' | b')') => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            Kind::Punct(b';') => declares = None,
            Kind::Punct(b',') if declares.is_some() => declares = Some(true),
            Kind::Dot if matches!(token.text, "global" | "const") => declares = Some(true),
            // Handles of textures are no memory.
            Kind::Dot if matches!(token.text, "texref" | "samplerref" | "surfref") => declares = None,
            Kind::Word if declares == Some(true) => {
                names.push(token.text.to_owned());
                declares = Some(false);
            }
            _ => {}
        }
    }
    names
}

/// The state of parsing: where it stands and what was declared at module level.
pub struct Parser<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
    pub module: Module,
    /// The number of its `.target`.
    target: u32,
    pub names: HashMap<String, Variable>,
    /// `.alias`: the other name's place in the text, its function, and the one that it stands for.
    aliases: Vec<(Token<'a>, u32, u32)>,
    /// Bytes that the ends of arrays have added to initial values.
    padded: u64,
    /// What a function cannot run with, of its parameters and what it says of its launches.
    refused: Option<PtxError>,
}

/// A variable's declaration before it is placed.
struct Declared {
    name: String,
    align: u32,
    element: Type,
    size: u64,
    /// Bytes of an element of the array, of an element of that, and so on.
    parts: Vec<u64>,
    /// `<n>`: that many variables with numbers as suffixes.
    many: Option<u32>,
    /// A parameter or result that is a register.
    register: bool,
    /// What its declaration says of the variables behind it in a list: type, alignment, elements of a vector.
    kind: (Type, u32, u32),
}

impl Declared {
    /// As a parameter or a result.
    fn formal(&self) -> Formal<'_> {
        let register = self.register.then_some(self.element);
        Formal { name: &self.name, size: self.size, align: self.align, register }
    }
}

impl<'t, 'a> Parser<'t, 'a> {
    /// The token that comes next.
    pub fn peek(&self) -> Token<'a> {
        self.peek_behind(0)
    }

    /// The token so many behind that.
    pub fn peek_behind(&self, count: usize) -> Token<'a> {
        self.tokens[(self.at + count).min(self.tokens.len() - 1)]
    }

    /// Takes the next token.
    pub fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    /// A syntax error at the next token.
    pub fn error(&self, message: impl Into<String>) -> PtxError {
        let token = self.peek();
        PtxError::syntax(token.line, token.column, message)
    }

    /// Takes the punctuation if it comes next.
    pub fn eat(&mut self, c: u8) -> bool {
        let found = self.peek().kind == Kind::Punct(c);
        if found {
            self.at += 1;
        }
        found
    }

    /// Takes the punctuation or fails.
    pub fn expect(&mut self, c: u8) -> Result<(), PtxError> {
        if self.eat(c) { Ok(()) } else { Err(self.error(format!("expected `{}`", c as char))) }
    }

    /// Takes `.name` if it comes next.
    pub fn eat_dot(&mut self, name: &str) -> bool {
        let token = self.peek();
        let found = token.kind == Kind::Dot && token.text == name;
        if found {
            self.at += 1;
        }
        found
    }

    /// Takes a name.
    pub fn word(&mut self) -> Result<&'a str, PtxError> {
        let token = self.peek();
        if token.kind == Kind::Word {
            self.at += 1;
            Ok(token.text)
        } else {
            Err(self.error("expected a name"))
        }
    }

    fn run(&mut self) -> Result<(), PtxError> {
        loop {
            let token = self.peek();
            match token.kind {
                Kind::End => break,
                Kind::Punct(b';') => {
                    self.at += 1;
                }
                Kind::Dot => self.directive()?,
                _ => return Err(self.error(format!("unexpected `{}`", token.text))),
            }
        }
        if self.module.version == 0 {
            return Err(PtxError::syntax(1, 1, "no .version directive: this is not PTX"));
        }
        Ok(())
    }

    /// `.alias name, function;`, both declared before.
    fn alias(&mut self) -> Result<(), PtxError> {
        let token = self.peek();
        let name = self.function_named()?;
        self.expect(b',')?;
        let function = self.function_named()?;
        self.aliases.push((token, name, function));
        self.expect(b';')
    }

    fn function_named(&mut self) -> Result<u32, PtxError> {
        let token = self.peek();
        let name = self.word()?;
        match self.names.get(name) {
            Some(Variable::Function(index)) if !self.module.functions[*index as usize].entry => Ok(*index),
            _ => Err(PtxError::syntax(token.line, token.column, format!("no function `{}`", token.text))),
        }
    }

    /// Gives each alias the body of the function that it stands for.
    fn follow_aliases(&mut self) -> Result<(), PtxError> {
        let mut instructions = 0;
        for (token, name, function) in std::mem::take(&mut self.aliases) {
            let functions = &mut self.module.functions;
            if functions[name as usize].defined || !functions[function as usize].defined {
                let message = "an alias stands for a function with a body, and has none itself";
                return Err(PtxError::syntax(token.line, token.column, message));
            }
            instructions += functions[function as usize].code.len();
            if instructions > MOST_OF_ALIASES {
                return Err(PtxError::syntax(token.line, token.column, "aliases of more functions than fit"));
            }
            let name_of_alias = std::mem::take(&mut functions[name as usize].name);
            functions[name as usize] = Function { name: name_of_alias, ..functions[function as usize].clone() };
        }
        Ok(())
    }

    fn skip_line(&mut self) {
        let line = self.peek().line;
        while self.peek().kind != Kind::End && self.peek().line == line {
            self.at += 1;
        }
    }

    /// `.file number "name"`, with more behind it on some lines.
    fn file(&mut self) {
        let line = self.peek().line;
        if let Kind::Int(number) = self.peek().kind
            && let Some(name) = self.tokens.get(self.at + 1).filter(|t| t.kind == Kind::Text)
        {
            self.module.files.insert(number as u32, name.text.to_string());
        }
        if self.peek().line == line {
            self.skip_line();
        }
    }

    /// `.loc file line column`
    fn location(&mut self, at: u32) {
        let line = self.peek().line;
        let number = |t: Option<&Token>| t.and_then(|t| if let Kind::Int(v) = t.kind { Some(v as u32) } else { None });
        let (file, there) = (number(self.tokens.get(self.at)), number(self.tokens.get(self.at + 1)));
        if let (Some(file), Some(there)) = (file, there) {
            self.module.locations.push((at, file, there));
        }
        if self.peek().line == line {
            self.skip_line();
        }
    }

    fn skip_past(&mut self, c: u8) -> Result<(), PtxError> {
        while self.peek().kind != Kind::Punct(c) {
            if self.peek().kind == Kind::End {
                return Err(self.error(format!("expected `{}` before the end", c as char)));
            }
            self.at += 1;
        }
        self.at += 1;
        Ok(())
    }

    /// The index just past the brace that closes the one at `at`.
    fn closing(&self, mut at: usize) -> Result<usize, PtxError> {
        let mut depth = 0usize;
        loop {
            match self.tokens[at].kind {
                Kind::Punct(b'{') => depth += 1,
                Kind::Punct(b'}') => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok(at + 1);
                    }
                }
                Kind::End => {
                    return Err(PtxError::syntax(self.tokens[at].line, self.tokens[at].column, "a missing `}`"));
                }
                _ => {}
            }
            at += 1;
        }
    }

    fn directive(&mut self) -> Result<(), PtxError> {
        let token = self.next();
        match token.text {
            "version" => {
                let number = self.next();
                let known = version_of(number.text).ok_or_else(|| {
                    let message = format!("unsupported .version {}: PTX ISA 1.0 to 9.x is read", number.text);
                    PtxError { code: 222, ..PtxError::syntax(number.line, number.column, message) }
                });
                self.module.version = known?;
            }
            _ if self.module.version == 0 => {
                let message = "expected .version at the beginning of the module";
                return Err(PtxError::syntax(token.line, token.column, message));
            }
            "target" => self.target()?,
            _ if self.module.target.is_empty() => {
                return Err(PtxError::syntax(token.line, token.column, "expected .target behind .version"));
            }
            "address_size" => {
                if self.small()? != 64 {
                    return Err(PtxError::unsupported(token.line, token.column, ".address_size 32"));
                }
            }
            "file" => self.file(),
            "loc" => self.skip_line(),
            "pragma" => self.skip_past(b';')?,
            "section" => {
                while self.peek().kind != Kind::Punct(b'{') && self.peek().kind != Kind::End {
                    self.at += 1;
                }
                self.at = self.closing(self.at)?;
            }
            "alias" => self.alias()?,
            "visible" | "weak" | "common" => self.declaration(false)?,
            "extern" => self.declaration(true)?,
            "global" | "const" | "shared" | "func" | "entry" | "tex" | "texref" | "surfref" | "samplerref" => {
                self.at -= 1;
                self.declaration(false)?;
            }
            _ => return Err(strange_directive(token)),
        }
        Ok(())
    }

    /// `.target sm_75[, debug]`
    fn target(&mut self) -> Result<(), PtxError> {
        let token = self.peek();
        let unknown =
            |token: Token| PtxError::syntax(token.line, token.column, format!("unknown .target `{}`", token.text));
        self.module.target = self.word()?.to_string();
        self.target = target_of(&self.module.target).ok_or_else(|| unknown(token))?;
        while self.eat(b',') {
            let token = self.peek();
            if !matches!(self.word()?, "debug" | "texmode_unified" | "texmode_independent" | "map_f64_to_f32") {
                return Err(unknown(token));
            }
        }
        Ok(())
    }

    fn declaration(&mut self, external: bool) -> Result<(), PtxError> {
        let (mut token, mut external) = (self.next(), external);
        while token.kind == Kind::Dot && matches!(token.text, "visible" | "weak" | "common" | "extern") {
            external |= token.text == "extern";
            token = self.next();
        }
        match (token.kind, token.text) {
            (Kind::Dot, "func") => self.function(false),
            (Kind::Dot, "entry") => self.function(true),
            (Kind::Dot, "global" | "const") if self.handle().is_some() => self.handles(),
            (Kind::Dot, space @ ("global" | "const")) => {
                let mut kind = None;
                loop {
                    let declared = self.declared(kind)?;
                    kind = Some(declared.kind);
                    self.global(declared, space == "const", external)?;
                    if !self.eat(b',') {
                        break;
                    }
                }
                self.expect(b';')
            }
            (Kind::Dot, "shared") => {
                let mut kind = None;
                loop {
                    let declared = self.declared(kind)?;
                    kind = Some(declared.kind);
                    let variable = self.shared(declared, external)?;
                    self.names.insert(variable.0, variable.1);
                    if !self.eat(b',') {
                        break;
                    }
                }
                self.expect(b';')
            }
            _ => Err(strange_directive(token)),
        }
    }

    /// The kind of handle of a texture or a surface, if one comes next.
    fn handle(&self) -> Option<&'static str> {
        let token = self.peek();
        ["texref", "samplerref", "surfref"].into_iter().find(|kind| token.kind == Kind::Dot && token.text == *kind)
    }

    /// `.texref name [= { … }], …;`: who names it is refused, not the module.
    fn handles(&mut self) -> Result<(), PtxError> {
        let kind = self.handle().unwrap_or_default();
        self.at += 1;
        loop {
            let name = self.word()?.to_string();
            self.names.insert(name, Variable::Handle(kind));
            if self.eat(b'[') {
                self.skip_past(b']')?;
            }
            if self.eat(b'=') {
                if self.peek().kind != Kind::Punct(b'{') {
                    return Err(self.error("expected `{`"));
                }
                self.at = self.closing(self.at)?;
            }
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b';')
    }

    /// `[.align n] [.v2|.v4] .type name [array]...`; `known` is the type if it was read already.
    fn declared(&mut self, known: Option<(Type, u32, u32)>) -> Result<Declared, PtxError> {
        let (mut align, mut vector, mut element) = match known {
            Some((t, align, vector)) => (align, vector, Some(t)),
            None => (0, 1, None),
        };
        while self.peek().kind == Kind::Dot {
            let token = self.next();
            match token.text {
                "align" => align = self.small()?,
                "v2" => vector = 2,
                "v4" => vector = 4,
                "attribute" => self.skip_past(b')')?,
                "ptr" => {
                    // `.ptr .global .align n`: what the pointer points to, not how the parameter lies.
                    while matches!(self.peek().text, "global" | "const" | "shared" | "local" | "generic") {
                        self.at += 1;
                    }
                    if self.eat_dot("align") {
                        self.small()?;
                    }
                }
                name => {
                    element = Some(Type::parse(name).ok_or_else(|| strange_type(token, ""))?);
                }
            }
        }
        let element = element.ok_or_else(|| self.error("expected a type"))?;
        let name = self.word()?.to_string();
        let mut size = u64::from(element.size() * vector);
        let mut many = None;
        if self.eat(b'<') {
            let count = self.small_in_angles()?;
            if count > MOST_MANY {
                return Err(self.error(format!("{count} variables of one name")));
            }
            many = Some(count);
            self.expect(b'>')?;
        }
        let each = size;
        let mut counts = Vec::new();
        while self.eat(b'[') {
            let count = if self.peek().kind == Kind::Punct(b']') { 0 } else { u64::from(self.small()?) };
            size = size.checked_mul(count).filter(|s| *s <= MOST_BYTES).ok_or_else(|| self.error("too large"))?;
            counts.push(count);
            self.expect(b']')?;
        }
        let bytes = |inner: &[u64]| inner.iter().fold(each, |bytes, count| bytes.saturating_mul(*count));
        let parts = (1..=counts.len()).map(|k| bytes(&counts[k..])).collect();
        let align = if align == 0 { element.size() * vector } else { align };
        if !align.is_power_of_two() || align > 4096 {
            return Err(self.error("an alignment that is no power of two"));
        }
        Ok(Declared { name, align, element, size, parts, many, register: false, kind: (element, align, vector) })
    }

    fn shared(&mut self, declared: Declared, external: bool) -> Result<(String, Variable), PtxError> {
        let size = u32::try_from(declared.size).map_err(|_| self.error("too large for shared memory"))?;
        let index = self.module.shared.len() as u32;
        let external = external || size == 0;
        self.module.shared.push(SharedVariable { name: declared.name.clone(), size, align: declared.align, external });
        Ok((declared.name, Variable::Shared(index)))
    }

    fn global(&mut self, declared: Declared, constant: bool, external: bool) -> Result<(), PtxError> {
        let index = self.module.globals.len() as u32;
        let mut init = Vec::new();
        let mut relocations = Vec::new();
        // The variable's own address may stand in its initial value.
        self.names.insert(declared.name.clone(), Variable::Global(index));
        if self.eat(b'=') {
            self.initial(&declared, &mut init, &mut relocations)?;
        }
        let size = if declared.size == 0 && !external { init.len() as u64 } else { declared.size };
        init.truncate(size as usize);
        self.module.globals.push(GlobalInfo {
            name: declared.name,
            size,
            align: declared.align,
            constant,
            init,
            relocations,
            external,
        });
        Ok(())
    }

    fn initial(
        &mut self,
        declared: &Declared,
        out: &mut Vec<u8>,
        relocations: &mut Vec<Relocation>,
    ) -> Result<(), PtxError> {
        // Where each open brace began.
        let mut open = Vec::new();
        loop {
            if self.eat(b'{') {
                open.push(out.len());
                continue;
            }
            if open.is_empty() || self.peek().kind != Kind::Punct(b'}') {
                self.initial_value(declared.element, out, relocations)?;
            }
            while !open.is_empty() && self.eat(b'}') {
                let began = open.pop().unwrap_or(0);
                // What is missing of an inner array is zero.
                let part = open.len().checked_sub(1).and_then(|k| declared.parts.get(k)).copied().unwrap_or(0);
                let end = began as u64 + part;
                self.padded += end.saturating_sub(out.len() as u64);
                if self.padded > MOST_PADDED {
                    return Err(self.error("an initial value of too many bytes"));
                }
                out.resize(out.len().max(end as usize), 0);
            }
            if open.is_empty() {
                return Ok(());
            }
            self.expect(b',')?;
        }
    }

    fn initial_value(
        &mut self,
        element: Type,
        out: &mut Vec<u8>,
        relocations: &mut Vec<Relocation>,
    ) -> Result<(), PtxError> {
        let token = self.peek();
        let bits = match token.kind {
            // `0xFF00(symbol)`: some bits of an address.
            Kind::Int(mask) if self.peek_behind(1).kind == Kind::Punct(b'(') => {
                self.at += 2;
                let token = self.next();
                let (symbol, addend) = self.address_of(token)?;
                self.expect(b')')?;
                relocations.push(Relocation { offset: out.len() as u32, symbol, addend, mask, bytes: element.size() });
                0
            }
            Kind::Word if token.text != "WARP_SZ" => {
                self.at += 1;
                let (symbol, addend) = self.address_of(token)?;
                if element.size() != 8 {
                    return Err(PtxError::unsupported(token.line, token.column, "an address of less than 64 bits"));
                }
                relocations.push(Relocation { offset: out.len() as u32, symbol, addend, mask: u64::MAX, bytes: 8 });
                0
            }
            _ => self.expression()?.bits(element),
        };
        out.extend_from_slice(&bits.to_le_bytes()[..element.size() as usize]);
        Ok(())
    }

    /// The variable or function of `symbol`, `symbol+4` or `generic(symbol)+4`, of which the first token is read.
    fn address_of(&mut self, token: Token<'_>) -> Result<(Symbol, i64), PtxError> {
        let name = if token.text == "generic" && self.eat(b'(') {
            let name = self.word()?;
            self.expect(b')')?;
            name
        } else {
            token.text
        };
        let addend = self.offset()?;
        match self.names.get(name) {
            Some(Variable::Global(index)) => Ok((Symbol::Global(*index), addend)),
            Some(Variable::Function(index)) => Ok((Symbol::Function(*index), addend)),
            Some(_) => Err(PtxError::unsupported(token.line, token.column, format!("initial value `{name}`"))),
            None => Err(undeclared(token, name)),
        }
    }

    fn formals(&mut self) -> Result<Vec<Declared>, PtxError> {
        let mut out = Vec::new();
        if self.eat(b')') {
            return Ok(out);
        }
        loop {
            let register = self.eat_dot("reg");
            if !register && !self.eat_dot("param") {
                return Err(self.error("expected `.param` or `.reg`"));
            }
            let token = self.peek();
            let known = self.handle().map(|kind| {
                self.at += 1;
                self.refused.get_or_insert(PtxError::unsupported(token.line, token.column, format!(".param .{kind}")));
                (Type::B64, 0, 1)
            });
            let declared = Declared { register, ..self.declared(known)? };
            if register && (declared.element == Type::Pred || declared.size != u64::from(declared.element.size())) {
                let what = format!(".reg {} as a parameter or result", declared.name);
                self.refused.get_or_insert(PtxError::unsupported(token.line, token.column, what));
            }
            out.push(declared);
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b')')?;
        Ok(out)
    }

    fn function(&mut self, entry: bool) -> Result<(), PtxError> {
        while self.eat_dot("attribute") {
            self.skip_past(b')')?;
        }
        let line = self.peek().line;
        let results = if !entry && self.eat(b'(') { self.formals()? } else { Vec::new() };
        let name = self.word()?.to_string();
        let params = if self.eat(b'(') { self.formals()? } else { Vec::new() };
        let mut refused = self.refused.take();
        let mut function = Function { name: name.clone(), entry, max_threads: 1024, line, ..Function::default() };
        loop {
            let token = self.peek();
            if token.kind != Kind::Dot {
                break;
            }
            self.at += 1;
            match token.text {
                "maxntid" | "reqntid" => {
                    let mut block = [1u32; 3];
                    block[0] = self.small()?;
                    for extent in &mut block[1..] {
                        if self.eat(b',') {
                            *extent = self.small()?;
                        }
                    }
                    function.max_threads = block.iter().fold(1u32, |a, b| a.saturating_mul(*b)).clamp(1, 1024);
                    if token.text == "reqntid" {
                        function.required = Some(block);
                    }
                }
                "maxnreg" => function.most_registers = self.small()?,
                "minnctapersm" | "maxnctapersm" | "maxclusterrank" => {
                    self.small()?;
                }
                "noreturn" | "blocksareclusters" | "explicitcluster" => {}
                "reqnctapercluster" => {
                    let mut blocks = self.small()?;
                    while self.eat(b',') {
                        blocks = blocks.saturating_mul(self.small()?);
                    }
                    if blocks != 1 {
                        let what = format!(".reqnctapercluster of {blocks} blocks");
                        refused.get_or_insert(PtxError::unsupported(token.line, token.column, what));
                    }
                }
                "pragma" => self.skip_past(b';')?,
                "abi_preserve" | "abi_preserve_control" => {
                    self.small()?;
                }
                _ => return Err(strange_directive(token)),
            }
        }
        let index = match self.names.get(&name) {
            Some(Variable::Function(index)) => *index,
            Some(_) => return Err(self.error(format!("`{name}` is declared twice"))),
            None => {
                self.module.functions.push(Function { name: name.clone(), line, ..Function::default() });
                let index = self.module.functions.len() as u32 - 1;
                self.names.insert(name.clone(), Variable::Function(index));
                index
            }
        };
        if self.eat(b';') {
            return Ok(());
        }
        if self.module.functions[index as usize].defined {
            return Err(self.error(format!("`{name}` is defined twice")));
        }
        if self.peek().kind != Kind::Punct(b'{') {
            return Err(self.error("expected the body of the function"));
        }
        let end = self.closing(self.at)?;
        self.module.locations.push((self.peek().line, 0, 0));
        function.defined = true;
        function.rows = HEADER_ROWS;
        let mut builder = Builder::new(function);
        let [results, params] = [&results, &params].map(|all| all.iter().map(Declared::formal).collect::<Vec<_>>());
        builder.formals(entry, &results, &params).map_err(|message| self.error(message))?;
        let body = match refused {
            Some(error) => Err(error),
            None => self.body(&mut builder).and_then(|lacking| {
                let function = builder.finish()?;
                Ok(match lacking {
                    Some(error) => function.into_unsupported(error),
                    None => function,
                })
            }),
        };
        let function = match body {
            Ok(function) => function,
            Err(error) if error.unsupported.is_some() => {
                self.at = end;
                builder.f.into_unsupported(error)
            }
            Err(error) => return Err(error),
        };
        self.module.functions[index as usize] = function;
        Ok(())
    }

    /// Reads a body to its end, and returns the first instruction that the engine lacks: what follows it has to be PTX.
    fn body(&mut self, builder: &mut Builder) -> Result<Option<PtxError>, PtxError> {
        self.expect(b'{')?;
        let (mut depth, mut lacking) = (1usize, None);
        while depth > 0 {
            let token = self.peek();
            match token.kind {
                Kind::Punct(b'{') => {
                    if depth == MOST_BLOCKS {
                        return Err(self.error("blocks nested too deeply"));
                    }
                    self.at += 1;
                    builder.open();
                    depth += 1;
                }
                Kind::Punct(b'}') => {
                    self.at += 1;
                    builder.close();
                    depth -= 1;
                }
                Kind::Punct(b';') => self.at += 1,
                Kind::Dot => self.body_directive(builder)?,
                Kind::Word if self.tokens[self.at + 1].kind == Kind::Punct(b':') => {
                    self.at += 2;
                    if self.eat_dot("branchtargets") {
                        let mut labels = Vec::new();
                        loop {
                            labels.push(self.word()?.to_string());
                            if !self.eat(b',') {
                                break;
                            }
                        }
                        self.expect(b';')?;
                        builder.branch_targets(token.text, labels, token.line, token.column);
                    } else if self.eat_dot("callprototype") || self.eat_dot("calltargets") {
                        builder.prototype(token.text);
                        self.skip_past(b';')?;
                    } else {
                        builder.label(token.text, token.line, token.column)?;
                    }
                }
                Kind::Word | Kind::Punct(b'@') => {
                    let start = self.at;
                    match self.instruction(builder) {
                        Err(error) if error.unsupported.is_some() => {
                            lacking.get_or_insert(error);
                            self.at = start;
                            self.skip_past(b';')?;
                        }
                        read => read?,
                    }
                }
                _ => return Err(self.error(format!("unexpected `{}`", token.text))),
            }
        }
        Ok(lacking)
    }

    fn body_directive(&mut self, builder: &mut Builder) -> Result<(), PtxError> {
        let token = self.next();
        match token.text {
            "loc" => self.location(token.line),
            "file" => self.file(),
            "pragma" => self.skip_past(b';')?,
            "reg" => {
                let vector = if self.eat_dot("v2") {
                    2
                } else if self.eat_dot("v4") {
                    4
                } else {
                    1
                };
                let kind = self.next();
                let element = if kind.text == "b128" { Some(Type::B128) } else { Type::parse(kind.text) };
                let whole = |ty: &Type| vector * ty.size() <= 16 && (vector == 1 || *ty != Type::Pred);
                let element = element.filter(|ty| kind.kind == Kind::Dot && whole(ty));
                let element = element.ok_or_else(|| strange_type(kind, ".reg "))?;
                loop {
                    let declared = self.declared(Some((element, 0, 1)))?;
                    let registers = (element, vector);
                    builder.register(&declared.name, registers, declared.many).map_err(|m| self.error(m))?;
                    if !self.eat(b',') {
                        break;
                    }
                }
                self.expect(b';')?;
            }
            "local" | "param" => {
                let mut kind = None;
                loop {
                    let declared = self.declared(kind)?;
                    kind = Some(declared.kind);
                    let copies = declared.many;
                    let local = token.text == "local";
                    for i in 0..copies.unwrap_or(1) {
                        let name = copies.map_or(declared.name.clone(), |_| format!("{}{i}", declared.name));
                        builder
                            .frame_variable(&name, declared.size, declared.align, local)
                            .map_err(|m| self.error(m))?;
                    }
                    if !self.eat(b',') {
                        break;
                    }
                }
                self.expect(b';')?;
            }
            space @ ("shared" | "global" | "const") => {
                let mut kind = None;
                loop {
                    let declared = self.declared(kind)?;
                    kind = Some(declared.kind);
                    if space == "shared" {
                        let (name, variable) = self.shared(declared, false)?;
                        builder.declare(&name, variable);
                    } else {
                        let name = declared.name.clone();
                        self.global(declared, space == "const", false)?;
                        if let Some(variable) = self.names.get(&name) {
                            builder.declare(&name, variable.clone());
                        }
                    }
                    if !self.eat(b',') {
                        break;
                    }
                }
                self.expect(b';')?;
            }
            _ => return Err(strange_directive(token)),
        }
        Ok(())
    }
}

/// Places parameters one after the other, each at its own alignment (at least `least`).
pub fn place<'n>(
    items: impl Iterator<Item = (&'n str, u64, u32)>,
    mut at: u32,
    least: u32,
) -> Result<(Vec<Slot>, u32), String> {
    let mut out = Vec::new();
    for (name, size, align) in items {
        let size = u32::try_from(size).ok().filter(|s| *s <= 1 << 20).ok_or("a parameter that is too large")?;
        at = at.next_multiple_of(align.max(least));
        out.push(Slot { name: name.to_string(), offset: at, size, align });
        at = at.checked_add(size).filter(|a| *a <= 1 << 24).ok_or("too many parameters")?;
    }
    Ok((out, at))
}

impl<'a> Parser<'_, 'a> {
    /// Reads a statement `[@p] opcode.mod.mod operand, ...;` and lowers it.
    fn instruction(&mut self, builder: &mut Builder) -> Result<(), PtxError> {
        let start = self.peek();
        let mut guard = None;
        if self.eat(b'@') {
            let negate = self.eat(b'!');
            let name = self.word()?;
            match builder.lookup(name) {
                Some(Variable::Register(row, Type::Pred)) => guard = Some((row, negate)),
                _ => return Err(self.error("expected a predicate")),
            }
        }
        let opcode = self.word()?;
        let mut mods: Vec<&'a str> = Vec::new();
        while self.peek().kind == Kind::Dot {
            mods.push(self.next().text);
        }
        builder.start(guard, start.line, start.column);
        let name = || Builder::full(opcode, &mods);
        if let Some(what) = unknown(opcode, &mods, self.module.version) {
            return Err(PtxError::syntax(start.line, start.column, what));
        }
        if let Some(what) = lacking(opcode, &mods, self.module.version, self.target) {
            return Err(PtxError::syntax(start.line, start.column, format!("`{}` {what}", name())));
        }
        if !Builder::knows(opcode) || mods.contains(&"tensor") {
            // The engine cannot read the operands of all that it lacks, but their names.
            self.names_in_statement(builder)?;
            return Err(PtxError::unsupported(start.line, start.column, name()));
        }
        let mut operands = Vec::new();
        if !self.eat(b';') {
            loop {
                let token = self.peek();
                let operand = self.operand(builder, opcode == "call")?;
                if let Some(name) = operand.name().filter(|_| !matches!(opcode, "bra" | "brx" | "call")) {
                    return Err(undeclared(token, name));
                }
                operands.push(operand);
                if operands.len() > 64 {
                    return Err(self.error("too many operands"));
                }
                if self.eat(b',') {
                    continue;
                }
                if self.eat(b';') {
                    break;
                }
                // The list of a call's parameters may follow without a comma after line breaks.
                return Err(self.error("expected `,` or `;`"));
            }
        }
        builder.lower(opcode, &mods, &operands)
    }

    /// Checks that the names up to the end of the statement are declared.
    fn names_in_statement(&mut self, builder: &Builder) -> Result<(), PtxError> {
        while !self.eat(b';') {
            let token = self.next();
            let known = |name| name == "_" || builder.lookup(name).is_some() || self.names.contains_key(name);
            match token.kind {
                Kind::End => return Err(PtxError::syntax(token.line, token.column, "expected `;`")),
                Kind::Word if !known(token.text) && !is_special(token.text) && token.text != "WARP_SZ" => {
                    return Err(undeclared(token, token.text));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A name that nothing has declared.
pub fn undeclared(token: Token, name: &str) -> PtxError {
    let what = if name.starts_with('%') { "register" } else { "variable" };
    PtxError::syntax(token.line, token.column, format!("no {what} `{name}`"))
}

/// A directive that the parser does not know, or not here.
fn strange_directive(token: Token) -> PtxError {
    if token.kind != Kind::Dot {
        return PtxError::syntax(token.line, token.column, format!("unexpected `{}`", token.text));
    }
    if is_directive(token.text) {
        return PtxError::unsupported(token.line, token.column, format!(".{}", token.text));
    }
    PtxError::syntax(token.line, token.column, format!("`.{}` is no directive of PTX", token.text))
}

/// A type that the engine does not give to variables.
fn strange_type(token: Token, declares: &str) -> PtxError {
    if token.kind == Kind::Dot && is_type(token.text) {
        return PtxError::unsupported(token.line, token.column, format!("{declares}.{}", token.text));
    }
    PtxError::syntax(token.line, token.column, format!("`.{}` is no type of PTX", token.text))
}
