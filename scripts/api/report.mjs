/** The public API as text: declarations without comments, bodies and private members. */
import ts from 'typescript';
import {exportsOf, isModule, readEntries, targetOf} from './entries.mjs';

const printer = ts.createPrinter({removeComments: true, newLine: ts.NewLineKind.LineFeed});

const isPrivate = (node) =>
  (ts.canHaveModifiers(node) &&
    ts.getModifiers(node)?.some(({kind}) => kind === ts.SyntaxKind.PrivateKeyword)) ||
  (node.name !== undefined && ts.isPrivateIdentifier(node.name));

/** The declaration as it stands in the .d.ts, less its private members and the words `export` and `declare`. */
function printed(declaration) {
  // A variable's declaration is the whole statement.
  const node = ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration;
  const {transformed} = ts.transform(node, [
    (context) => {
      const visit = (child) => (isPrivate(child) ? undefined : ts.visitEachChild(child, visit, context));
      return (top) => ts.visitEachChild(top, visit, context);
    },
  ]);
  return printer
    .printNode(ts.EmitHint.Unspecified, transformed[0], node.getSourceFile())
    .replace(/^(export |declare |default )+/, '')
    .replace(/ {4}/g, '  ');
}

/** Symbols that a declaration names. */
function named(checker, node, found) {
  if (ts.isIdentifier(node)) {
    const symbol = checker.getSymbolAtLocation(node);
    if (symbol !== undefined) found.add(targetOf(checker, symbol));
  }
  if (!isPrivate(node)) {
    ts.forEachChild(node, (child) => {
      named(checker, child, found);
    });
  }
  return found;
}

class Report {
  /** Where each symbol was reported. */
  places = new Map();
  lines = [];

  constructor({checker, folder, entries}) {
    this.checker = checker;
    this.folder = folder;
    for (const {name, exports} of entries) {
      this.lines.push(`## \`${name}\``, '');
      if (exports.length === 0) {
        this.lines.push('Exports nothing: importing it is what it is for.', '');
        continue;
      }
      this.lines.push('```ts');
      this.declare(exports, '', name);
      this.lines.push('```', '');
    }
    this.declareRest();
  }

  declare(symbols, prefix, entry) {
    for (const symbol of symbols) {
      const target = targetOf(this.checker, symbol);
      const full = `${prefix}${symbol.name}`;
      const known = this.places.get(target);
      if (known !== undefined) {
        const name = known.full === symbol.name ? '' : ` ${known.full}`;
        this.lines.push(`${full} //${name}${known.entry === entry ? '' : ` of '${known.entry}'`}`);
      } else if (isModule(target)) {
        this.places.set(target, {full, entry});
        this.lines.push(`namespace ${full}`);
        this.declare(exportsOf(this.checker, target), `${full}.`, entry);
      } else {
        this.places.set(target, {full, entry});
        const note = full === symbol.name ? '' : `// ${full}\n`;
        this.lines.push(note + target.declarations.map(printed).join('\n'));
      }
    }
  }

  /** What is not exported, and named by what is: an options type's base, a state's shape. */
  declareRest() {
    const rest = new Map();
    let open = [...this.places.keys()];
    while (open.length > 0) {
      const next = [];
      for (const symbol of open) {
        for (const declaration of symbol.declarations ?? []) {
          if (ts.isSourceFile(declaration)) continue;
          for (const found of named(this.checker, declaration, new Set())) {
            const own = found.declarations?.some(
              (d) => d.getSourceFile().fileName.startsWith(this.folder) && ts.isSourceFile(d.parent ?? d),
            );
            if (own && !isModule(found) && !this.places.has(found) && !rest.has(found)) {
              rest.set(found, found.name);
              next.push(found);
            }
          }
        }
      }
      open = next;
    }
    this.lines.push('## Not exported, and part of the above', '', '```ts');
    const sorted = [...rest.keys()].sort((a, b) => (a.name < b.name ? -1 : 1));
    this.lines.push(...sorted.map((symbol) => symbol.declarations.map(printed).join('\n')), '```', '');
  }
}

const HEAD = `# The public API

Made by \`npm run api\` from the built types: a change of this file is a change of the public API, and needs a line in the changelog.
CONTRIBUTING.md says which changes are breaking. Comments and private members are left out.
`;

/** The report of the package at `root`, whose dist must be built. */
export const reportOf = (root) => `${HEAD}\n${new Report(readEntries(root)).lines.join('\n')}`;
