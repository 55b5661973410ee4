"""`nl.tile_size`: limits of the chip that the kernel is specialised for."""

from __future__ import annotations

from neuron_chip import Chip
from nki.program.builder import current_or_none
from nki.settings import target_chip

_FP32 = 4
_BN_STATS_ELEMENTS = 512
_SBUF_ALIGN = 4
_RESERVED_SBUF_BYTES = 16 * 1024
"""What AWS's compiler keeps of each partition; its tile_size reports the rest as usable."""


class TileSize:
    """Largest tiles, in elements and bytes."""

    @property
    def _chip(self) -> Chip:
        builder = current_or_none()
        return builder.chip if builder is not None else target_chip()

    @property
    def pmax(self) -> int:
        """Most partitions of a tile."""
        return self._chip.sbuf.partitions

    @property
    def psum_bank_fmax_bytes(self) -> int:
        """Bytes of one PSUM bank in a partition."""
        bank = self._chip.psum.bank_bytes_per_partition
        assert bank is not None
        return bank

    @property
    def psum_bank_fmax(self) -> int:
        """fp32 elements of one PSUM bank in a partition."""
        return self.psum_bank_fmax_bytes // _FP32

    @property
    def psum_fmax(self) -> int:
        """An older name of psum_bank_fmax."""
        return self.psum_bank_fmax

    @property
    def psum_num_banks(self) -> int:
        """PSUM banks of a partition."""
        return self._chip.psum.bytes_per_partition // self.psum_bank_fmax_bytes

    @property
    def psum_min_align(self) -> int:
        """Bytes that a PSUM address is a multiple of."""
        return _FP32

    @property
    def sbuf_min_align(self) -> int:
        """Bytes that an SBUF address is a multiple of."""
        return _SBUF_ALIGN

    @property
    def gemm_stationary_fmax(self) -> int:
        """Most free elements of a matmul's stationary operand."""
        return self._chip.tensor.columns

    @property
    def gemm_moving_fmax(self) -> int:
        """Most free elements of a matmul's moving operand on every chip."""
        return self.psum_bank_fmax

    @property
    def bn_stats_fmax(self) -> int:
        """Most free elements of bn_stats."""
        return _BN_STATS_ELEMENTS

    @property
    def sbuf_size_bytes(self) -> int:
        """All of SBUF in bytes."""
        return self._chip.sbuf.total_bytes

    @property
    def sbuf_fmax_bytes(self) -> int:
        """Usable bytes of one SBUF partition."""
        return self._chip.sbuf.bytes_per_partition - _RESERVED_SBUF_BYTES

    @property
    def sbuf_fmax(self) -> int:
        """Usable fp32 elements of one SBUF partition."""
        return self.sbuf_fmax_bytes // _FP32

    @property
    def total_available_sbuf_size(self) -> int:
        """An older name of sbuf_fmax_bytes."""
        return self.sbuf_fmax_bytes


tile_size = TileSize()
