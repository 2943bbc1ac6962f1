package hardware

import (
	"fmt"
	"strings"
)

// A GPU is a row of a data sheet: peaks without sparsity, tensor cores accumulating in
// FP32. Rates are decimal; 0 is what the GPU has no units for.
type GPU struct {
	Name      string  // as a flag takes it
	Label     string  // for people
	MemoryMiB int     // as nvidia-smi or rocm-smi shows it, error correction taken off
	Bandwidth float64 // bytes per second
	BF16      float64 // FLOP per second
	FP8, FP4  float64
	Link      float64 // bytes per second in one direction to the other GPUs of a server
	Watts     float64 // of the board
	Source    string
}

// GPUs lists the table.
func GPUs() []GPU {
	const (
		hopper = "NVIDIA H100 Tensor Core GPU data sheet and H100 architecture white paper"
		ampere = "NVIDIA A100 Tensor Core GPU data sheet"
		geo50  = "NVIDIA RTX Blackwell GPU architecture white paper, appendix"
	)
	const pcie3, pcie4, pcie5 = 16e9, 32e9, 64e9 // × 16, one direction
	return []GPU{
		{"h100", "H100 SXM", 81_559, 3.35e12, 989.4e12, 1978.9e12, 0, 450e9, 700, hopper},
		{"h100-pcie", "H100 PCIe", 81_559, 2.0e12, 756.5e12, 1513e12, 0, pcie5, 350, hopper},
		{"h100-nvl", "H100 NVL", 95_830, 3.9e12, 835.5e12, 1671e12, 0, 300e9, 400, "NVIDIA H100 NVL data sheet"},
		{"h200", "H200 SXM", 143_771, 4.8e12, 989.4e12, 1978.9e12, 0, 450e9, 700,
			"NVIDIA H200 Tensor Core GPU data sheet"},
		{"b200", "B200 SXM", 183_359, 8.0e12, 2250e12, 4500e12, 9000e12, 900e9, 1000,
			"NVIDIA HGX B200 data sheet, per GPU"},
		{"a100-80gb", "A100 SXM 80 GB", 81_920, 2.039e12, 312e12, 0, 0, 300e9, 400, ampere},
		{"a100-40gb", "A100 SXM 40 GB", 40_960, 1.555e12, 312e12, 0, 0, 300e9, 400, ampere},
		{"a10", "A10", 23_028, 600e9, 125e12, 0, 0, pcie4, 150, "NVIDIA A10 data sheet"},
		{"l40s", "L40S", 46_068, 864e9, 362e12, 733e12, 0, pcie4, 350, "NVIDIA L40S data sheet"},
		{"l4", "L4", 23_034, 300e9, 121e12, 242e12, 0, pcie4, 72, "NVIDIA L4 data sheet"},
		{"t4", "T4", 15_360, 320e9, 65e12, 0, 0, pcie3, 70, "NVIDIA T4 data sheet (FP16; it has no BF16)"},
		{"rtx4090", "RTX 4090", 24_564, 1.008e12, 165.2e12, 330.3e12, 0, pcie4, 450,
			"NVIDIA Ada GPU architecture white paper, appendix"},
		{"rtx5080", "RTX 5080", 16_303, 960e9, 112.6e12, 225.1e12, 900.4e12, pcie5, 360, geo50},
		{"rtx5090", "RTX 5090", 32_607, 1.792e12, 209.5e12, 419e12, 1676e12, pcie5, 575, geo50},
		{"rtxpro6000", "RTX PRO 6000 Blackwell", 97_887, 1.792e12, 503.8e12, 1007.6e12, 2015.2e12, pcie5, 600,
			"NVIDIA RTX PRO Blackwell GPU architecture white paper"},
		{"mi300x", "MI300X", 196_592, 5.3e12, 1307.4e12, 2614.9e12, 0, 448e9, 750, "AMD Instinct MI300X data sheet"},
		{"mi325x", "MI325X", 262_128, 6.0e12, 1307.4e12, 2614.9e12, 0, 448e9, 1000, "AMD Instinct MI325X data sheet"},
	}
}

// FindGPU finds a GPU by its name; without one the error lists them.
func FindGPU(name string) (GPU, error) {
	var names []string
	for _, g := range GPUs() {
		if g.Name == strings.ToLower(name) {
			return g, nil
		}
		names = append(names, g.Name)
	}
	return GPU{}, fmt.Errorf("no data sheet of that GPU: want one of %s", strings.Join(names, ", "))
}
