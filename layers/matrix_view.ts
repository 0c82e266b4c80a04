/**
 * Kernels of an attention layer are three-dimensional ([D,H,r] and [H,d,O]) but act as matrices ([D, H*r] and
 * [H*d, O]). Initializers and constraints are therefore applied to the matrix:
 *
 * - fans. glorotUniform must see fan-in D and fan-out H*r. On the bare 3-D shape Keras's rule reads a convolution
 *   (fan-in H*D, fan-out r*D), which makes the initial weights of wide layers several times too small. `orthogonal`
 *   and `identity` are defined for matrices only.
 * - norms. maxNorm and its kin bound the incoming weights of one unit: a column of the matrix.
 */
import * as tf from '@tensorflow/tfjs-core';
import type {Constraint, Initializer} from './identifiers';

type Shape = (number | null)[];

export class MatrixInitializer extends tf.serialization.Serializable {
  static className = 'MatrixInitializer';

  constructor(
    private readonly inner: Initializer,
    private readonly matrix: [number, number],
  ) {
    super();
  }

  apply(shape: Shape, dtype?: tf.DataType): tf.Tensor {
    return tf.tidy(() => tf.reshape(this.inner.apply(this.matrix, dtype), shape as number[]));
  }

  fromConfigUsesCustomObjects(): boolean {
    return false;
  }

  getConfig(): tf.serialization.ConfigDict {
    return {};
  }
}

export class MatrixConstraint extends tf.serialization.Serializable {
  static className = 'MatrixConstraint';

  constructor(
    private readonly inner: Constraint,
    private readonly matrix: [number, number],
  ) {
    super();
  }

  apply(w: tf.Tensor): tf.Tensor {
    return tf.tidy(() => tf.reshape(this.inner.apply(tf.reshape(w, this.matrix)), w.shape));
  }

  getConfig(): tf.serialization.ConfigDict {
    return {};
  }
}
