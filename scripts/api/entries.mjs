/** What the package exports, read from the built types: every entry of package.json's `exports` that has types. */
import {readFileSync} from 'node:fs';
import {resolve} from 'node:path';
import ts from 'typescript';

/** The first `types` path below a value of `exports`: CommonJS's, which holds the declarations themselves. */
function typesOf(conditions) {
  if (conditions === null || typeof conditions !== 'object') return null;
  const {types, require, ...others} = conditions;
  for (const found of [require && typesOf(require), types, ...Object.values(others).map(typesOf)]) {
    if (typeof found === 'string') return found;
  }
  return null;
}

/** Follows `export {a} from` and `export * as a from` to where a thing is declared. */
export const targetOf = (checker, symbol) =>
  symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;

/** A module, as `export * as name` gives it. */
export const isModule = (symbol) =>
  symbol.declarations?.some((declaration) => ts.isSourceFile(declaration)) === true;

/**
 * {checker, folder, entries: [{name, exports: [symbol]}]}, sorted by name. `folder` is where the types are.
 *
 * @throws Error where an entry's types are missing: dist is not built.
 */
export function readEntries(root) {
  const {exports} = JSON.parse(readFileSync(resolve(root, 'package.json'), 'utf8'));
  const files = Object.entries(exports).flatMap(([name, conditions]) => {
    const types = typesOf(conditions);
    return types === null ? [] : [{name, file: resolve(root, types)}];
  });
  const program = ts.createProgram(
    files.map(({file}) => file),
    {
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.Node16,
      moduleResolution: ts.ModuleResolutionKind.Node16,
      strict: true,
      skipLibCheck: true,
      noEmit: true,
      types: [],
      lib: ['lib.es2022.d.ts', 'lib.dom.d.ts'],
    },
  );
  const checker = program.getTypeChecker();
  const entries = files.map(({name, file}) => {
    const source = program.getSourceFile(file);
    if (source === undefined) throw new Error(`${name}: there is no ${file}; npm run build makes it.`);
    return {name, exports: exportsOf(checker, checker.getSymbolAtLocation(source))};
  });
  return {checker, folder: resolve(root, 'dist/types'), entries};
}

/** The exports of a module, sorted by name. */
export const exportsOf = (checker, module) =>
  checker.getExportsOfModule(module).sort((a, b) => (a.name < b.name ? -1 : 1));
