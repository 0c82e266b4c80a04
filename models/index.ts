export {
  CharacterTokenizer,
  type CharacterTokenizerJSON,
  type CharacterTokenizerOptions,
  characterTokenizer,
  characterTokenizerFromJSON,
} from './character_tokenizer';
export {type ConvertOptions, convert} from './convert';
export {transformer} from './transformer';
export type {
  AttentionKind,
  FeedForwardActivation,
  Head,
  PositionKind,
  TransformerOptions,
} from './transformer_options';
