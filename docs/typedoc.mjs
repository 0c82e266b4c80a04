/** `npm run docs`: a site of the guides and of every public docstring, in docs/site. A warning is an error. */
import {Converter, OptionDefaults} from 'typedoc';

/** Guides are called by their first heading, not by their file. */
function titles(app) {
  app.converter.on(Converter.EVENT_CREATE_DOCUMENT, (_, guide) => {
    const heading = /^# (.*)$/m.exec(guide.content.map(({text}) => text).join(''));
    guide.name = heading[1];
  });
}

/** In the order of guides/README.md. */
const GUIDES = [
  ...[
    'README',
    'quick_start',
    'mathematics',
    'feature_maps',
    'streaming',
    'masks',
    'training',
    'checkpoints',
    'backends',
  ],
  ...['new_backend', 'troubleshooting', 'migrating'],
];

export default {
  name: 'tfjs-linear-attention',
  includeVersion: true,
  entryPoints: ['../index.ts', '../node_webgpu.ts'],
  tsconfig: '../tsconfig.build.json',
  projectDocuments: GUIDES.map((name) => `guides/${name}.md`),
  plugin: [titles],
  sort: ['kind', 'instance-first', 'alphabetical-ignoring-documents'],
  readme: '../README.md',
  out: 'site',
  cleanOutputDir: true,
  disableSources: true,
  excludePrivate: true,
  excludeProtected: true,
  excludeInternal: true,
  // A note for tfjs's minifier, not for readers.
  modifierTags: [...OptionDefaults.modifierTags, '@nocollapse'],
  excludeTags: [...OptionDefaults.excludeTags, '@nocollapse'],
  // What a call never needs to name: tfjs's own argument types under our names, and what stands between a layer's parts.
  intentionallyNotExported: [
    ...[
      'AttentionOptions',
      'FeatureMapConfig',
      'GeluOptions',
      'Heads',
      'Identifier',
      'Initializer',
      'Input',
      'Inputs',
    ],
    ...['LayerArgs', 'Shape'],
  ],
  treatWarningsAsErrors: true,
  treatValidationWarningsAsErrors: true,
  validation: {invalidLink: true, invalidPath: true, notExported: true},
};
